"""The access level of each message, and what the model reads in place of `@scope`."""

import json
from pathlib import Path

import pytest

from agents_app import conversation
from agents_app.inbound_images import InboundImage
from halo_project.database import db
from halo_project.errors import BadRequest, Forbidden
from sessions_app.models import AgentSession
from tests.support.crew import HANGING, Crew, start
from tests.support.image_files import png
from tests.support.model_server import Call, ModelReply

pytestmark = pytest.mark.django_db(transaction=True)


async def say(crew: Crew, text: str, level: str) -> AgentSession:
    await conversation.send(
        workspace=str(crew.workspace), session_id="root", text=text, agent_id="lead", access_level=level
    )
    return await crew.session()


def tools_of(crew: Crew, request: int) -> list[str]:
    return [tool["name"] for tool in crew.server.requests[request].body["tools"]]


async def test_the_level_of_the_newest_message_counts_from_its_round_on(crew: Crew) -> None:
    crew.add_agent("lead", "tools: [file_read, file_write]")
    crew.on("lead", "say", "said", always=True)
    for level in ("full", "readonly", "workspace"):
        root = await say(crew, f"say it at {level}", level)
        await crew.settle()
        assert root.access_level == level
    assert "file_write" in tools_of(crew, 0) and "file_write" not in tools_of(crew, 1)
    assert "file_write" in tools_of(crew, 2)
    await crew.nothing_is_left()


async def test_a_lower_level_takes_effect_in_the_run_that_is_going_on(crew: Crew) -> None:
    crew.add_agent("lead", "tools: [file_list, file_write]")
    crew.on("lead", "one", ModelReply(text="first", wait_ms=300))
    crew.on("lead", "two", ModelReply(calls=[Call("file_write", {"path": "x.txt", "content": "x"})]))
    crew.on("lead", "unknown tool", "cannot")
    await say(crew, "one", "full")
    await crew.asked(1)
    root = await say(crew, "two", "readonly")
    await crew.settle()
    assert "file_write" not in tools_of(crew, 1) and not (crew.workspace / "x.txt").exists()
    assert crew.answers(root)[-1] == "cannot"
    await crew.nothing_is_left()


async def test_sub_sessions_inherit_the_level_and_follow_when_it_changes(crew: Crew) -> None:
    crew.on("lead", "go", ModelReply(calls=[start("the task")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "the task", HANGING)
    crew.on("lead", "lower", "so be it")
    await say(crew, "go", "workspace")
    await crew.asked(3)
    assert [child.access_level for child in await crew.children()] == ["workspace"]
    await say(crew, "lower", "readonly")
    assert [child.access_level for child in await crew.children()] == ["readonly"]
    assert await crew.stop()
    await crew.settle()


async def test_no_session_stands_above_the_one_that_started_it(crew: Crew, tmp_path: Path) -> None:
    """A door with more rights speaks to the child once; the parent must not gain a helper by it."""
    out = tmp_path / "outside"
    crew.add_agent("lead", "tools: [file_read]\nteam: [helper]")
    crew.on("lead", "go", ModelReply(calls=[start("the task")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "the task", "done")
    crew.on("lead", "done", "fine")
    await say(crew, "go", "workspace")
    await crew.settle()
    (child,) = await crew.children()
    crew.on("helper", "hello", "hello")
    await conversation.send(
        workspace=str(crew.workspace), session_id=child.session_id, text="hello", access_level="full"
    )
    await crew.settle()
    (child,) = await crew.children()
    assert child.access_level == "workspace"
    await db(AgentSession.objects.filter(pk=child.pk).update, access_level="full")  # whatever its row says
    ask = {"target_session_id": child.session_id, "message": "touch it"}
    crew.on("lead", "again", ModelReply(calls=[Call("query_session", ask)]))
    crew.on("lead", "code", "asked", always=True)
    crew.on("helper", "touch it", ModelReply(calls=[Call("shell_exec", {"command": f"touch {out}"})]))
    crew.on("helper", "", "tried", always=True)
    crew.on("lead", "", "so be it", always=True)
    await say(crew, "again", "workspace")
    await crew.settle()
    assert not out.exists()
    (child,) = await crew.children()
    assert child.access_level == "workspace", "the next message puts its row right as well"


async def test_observers_send_nothing_and_levels_have_names(crew: Crew) -> None:
    with pytest.raises(Forbidden):
        await say(crew, "hello", "observer")
    with pytest.raises(BadRequest):
        await say(crew, "hello", "root")


async def test_query_agent_names_only_the_tools_that_the_agent_would_get(crew: Crew) -> None:
    crew.add_agent("helper", "tools: [file_read, view_image, file_write]")
    file = crew.workspace / ".halo/agents/helper/agent.yaml"
    file.write_text(file.read_text().replace("maxTokens: 1000", "maxTokens: 1000, image: false"))
    crew.on("lead", "who", ModelReply(calls=[Call("query_agent", {"agent_id": "helper"})]))
    crew.on("lead", "code", "thanks")
    root = await say(crew, "who is it?", "readonly")
    await crew.settle()
    assert "**Tools:** file_read\n" in json.loads(crew.results(root)[0])["content"]
    await crew.nothing_is_left()


async def test_scope_is_read_by_the_model_and_shown_as_it_was_typed(crew: Crew) -> None:
    place = crew.workspace / "src/.halo"
    place.mkdir(parents=True)
    (place / "INSTRUCTIONS.md").write_text("Use tabs.")
    crew.on("lead", "Use tabs.", "I will")
    crew.on("lead", "and now?", "done")
    root = await crew.send("@scope src rename it")
    await crew.settle()
    await crew.send("and now?")
    await crew.settle()
    first, _, second, _ = (message["content"][-1]["text"] for message in crew.raw(root))
    assert '<workspace-instructions dir="src"' in first and first.endswith("rename it") and "@scope" not in first
    assert "Use tabs." not in second, "for that one message"
    assert crew.said(root) == ["@scope src rename it", "and now?"] and crew.answers(root) == ["I will", "done"]
    await crew.nothing_is_left()


async def test_a_scope_that_is_no_folder_is_told_once_and_the_words_go_on(crew: Crew) -> None:
    crew.on("lead", "@scope nowhere go", "going")
    root = await crew.send("@scope nowhere go")
    await crew.settle()
    notices = [row["content"] for row in crew.rows(root) if row["type"] == "notification"]
    assert len(notices) == 1 and "no such folder" in notices[0] and crew.answers(root) == ["going"]
    await crew.nothing_is_left()


async def test_an_image_is_not_written_where_a_link_leads_out_of_the_workspace(crew: Crew, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    assets = crew.workspace / ".halo/assets"
    if assets.exists():
        assets.rmdir()
    assets.symlink_to(outside)
    with pytest.raises(Forbidden):
        await conversation.send(
            workspace=str(crew.workspace), text="look", agent_id="lead", images=[InboundImage(png(4, 4), "image/png")]
        )
    assert list(outside.rglob("*")) == []


@pytest.mark.parametrize("became", ["another kind", "no image", "a link", "in a linked folder"])
async def test_an_image_is_taken_for_what_it_is_when_it_lands(crew: Crew, tmp_path: Path, became: str) -> None:
    crew.on("lead", "look", "seen")
    sent = await conversation.send(
        workspace=str(crew.workspace),
        session_id="root",
        agent_id="lead",
        text="look",
        images=[InboundImage(png(4, 4), "image/webp")],
    )
    (file,) = (crew.workspace / ".halo/assets").rglob("image_*")
    if became == "no image":
        file.write_text("root:x:0:0")
    elif became == "a link":
        (tmp_path / "private.png").write_bytes(png(4, 4))
        file.unlink()
        file.symlink_to(tmp_path / "private.png")
    elif became == "in a linked folder":
        file.parent.rename(tmp_path / "moved")
        file.parent.symlink_to(tmp_path / "moved")
    await crew.settle()
    root = await crew.session(sent.session_id)
    block = crew.raw(root)[0]["content"][0]
    if became == "another kind":
        assert block["source"]["media_type"] == "image/png", "its bytes tell, not what was written down"
    else:
        assert block == {"type": "text", "text": f"[image removed: {file.name}]"}
