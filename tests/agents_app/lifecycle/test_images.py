"""Images in a whole turn: what a model that sees asks for and gets, and what one that does not is offered instead."""

import base64
import json

import pytest

from agents_app import conversation
from agents_app.inbound_images import InboundImage
from agents_app.runtimes.anthropic_request import NO_IMAGE
from sessions_app.workspaces import paths_of
from tests.support.crew import Crew
from tests.support.image_files import png
from tests.support.model_server import Call, ModelReply

pytestmark = pytest.mark.django_db(transaction=True)

SHOT = png(40, 30)
ENCODED = base64.b64encode(SHOT).decode()
BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ENCODED}}
LINE = f"shot.png: image/png, {len(SHOT)} bytes, 40 × 30 pixels"
LOOK = ModelReply(calls=[Call("view_image", {"path": "shot.png"}, "c1")])


def add_viewer(crew: Crew, *, sees: bool) -> None:
    crew.add_agent("viewer", "tools: [file_list, view_image]")
    if not sees:
        file = crew.workspace / ".halo/agents/viewer/agent.yaml"
        file.write_text(file.read_text().replace("maxTokens: 1000", "maxTokens: 1000, image: false"))
    (crew.workspace / "shot.png").write_bytes(SHOT)


async def test_a_model_that_sees_looks_at_a_file_and_the_next_request_holds_the_image(crew: Crew) -> None:
    add_viewer(crew, sees=True)
    crew.on("viewer", "look", LOOK)
    crew.on("viewer", LINE, "A white page.")
    root = await crew.send("look", agent="viewer")
    await crew.settle()
    first, second = (request.body for request in crew.server.requests)
    assert [tool["name"] for tool in first["tools"]][:2] == ["file_list", "view_image"]
    assert "Your tools: file_list, view_image" in json.dumps(first["system"])
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": LINE}, BLOCK]}
    assert second["messages"][-1]["content"] == [result] == crew.raw(root)[2]["content"]
    outputs = [row["toolOutput"] for row in crew.rows(root) if row["type"] == "tool_result"]
    assert outputs == [LINE] and crew.answers(root) == ["A white page."]
    paths = paths_of(root)
    assert ENCODED in paths.raw.read_text() and ENCODED not in paths.ui.read_text()
    assert ENCODED not in json.dumps(await crew.frames(root))
    await crew.nothing_is_left()


async def test_a_model_without_vision_is_not_offered_it_and_a_call_is_answered_as_to_an_unknown_tool(
    crew: Crew,
) -> None:
    add_viewer(crew, sees=False)
    crew.on("viewer", "what is this?", LOOK)
    crew.on("viewer", "unknown tool", "I cannot see it.")
    accepted = await conversation.send(
        workspace=str(crew.workspace),
        session_id="root",
        agent_id="viewer",
        text="what is this?",
        images=[InboundImage(SHOT, "image/png")],
    )
    await crew.settle()
    root = await crew.session(accepted.session_id)
    first, second = crew.server.requests
    names = [tool["name"] for tool in first.body["tools"]]
    assert "file_list" in names and "view_image" not in names
    assert "view_image" not in json.dumps(first.body["system"])
    assert first.body["messages"][0]["content"][0] == {"type": "text", "text": NO_IMAGE}
    assert 'unknown tool "view_image". Available: ' in crew.results(root)[0]
    assert ENCODED not in first.raw.decode() + second.raw.decode()
    assert crew.raw(root)[0]["content"][0] == BLOCK, "kept for a model that sees"
    await crew.nothing_is_left()


@pytest.mark.parametrize("status", [400, 413])
async def test_an_image_that_the_vendor_refuses_does_not_end_the_session(crew: Crew, status: int) -> None:
    add_viewer(crew, sees=True)
    message = "messages.2.content.0.image.source.base64: image exceeds 5 MB maximum: 5272940 bytes > 5242880 bytes"
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    crew.on("viewer", "look", LOOK)
    crew.on("viewer", LINE, ModelReply(status=status, error=error))
    crew.on("viewer", "[image removed: the model could not read it]", "It was refused.")
    root = await crew.send("look", agent="viewer")
    await crew.settle()
    assert crew.answers(root) == ["It was refused."] and ENCODED not in paths_of(root).raw.read_text()
    await crew.nothing_is_left()
