"""The assembled prompt that a person may look at is the one that the next round sends."""

from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.utils import timezone

from agents_app.disabled_items import set_disabled
from agents_app.models import DisabledItem
from agents_app.prompt_preview import preview
from halo_project.database import db
from halo_project.errors import BadRequest, NotFound
from tests.agents_app.config.support import write, write_agent
from tests.support.crew import Crew
from tests.support.model_server import Call, ModelReply
from tests.support.web_fixtures import client, password  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)


def prepare(workspace: Path) -> None:
    write(workspace / ".halo" / "INSTRUCTIONS.md", "Rules.")
    write(workspace / ".halo" / "INDEX.md", "Map.")
    write(workspace / "src" / ".halo" / "INSTRUCTIONS.md", "Rules of src.")


async def test_of_a_root_and_of_a_sub_agent(crew: Crew, home) -> None:
    prepare(crew.workspace)
    brief = {"agent_id": "helper", "message": "go", "working_dir": "src"}
    crew.on("lead", "begin", ModelReply(calls=[Call("start_session", brief)]))
    root = await crew.send("begin")
    await crew.settle()
    (child,) = await crew.children()
    for session in (root, child):
        sent = next(row["systemPrompt"] for row in crew.rows(session) if row["type"] == "context")
        shown = await db(preview, session.agent_id, str(crew.workspace), session.session_id)
        assert shown.text == sent
        assert shown.root == (session.pk == root.pk)
    names = [section.name for section in shown.sections]
    assert names == ["agent", "team", "instructions", "directory", "project", "place", "all", "tools"]


async def test_of_a_session_that_would_begin_now(crew: Crew, home) -> None:
    prepare(crew.workspace)
    shown = await db(preview, "lead", str(crew.workspace))
    assert [section.name for section in shown.sections] == [
        "bootstrap", "agent", "team", "instructions", "project", "place", "root", "all", "tools"
    ]  # fmt: skip
    root = await crew.send("begin")
    await crew.settle()
    assert shown.text == next(row["systemPrompt"] for row in crew.rows(root) if row["type"] == "context")
    with pytest.raises(BadRequest, match="of the agent 'lead'"):
        await db(preview, "helper", str(crew.workspace), "root")
    with pytest.raises(NotFound):
        await db(preview, "lead", str(crew.workspace), "nobody")


async def test_who_is_switched_off_is_not_in_it(crew: Crew, home) -> None:
    root = await crew.send("begin")
    await crew.settle()
    before = await db(preview, "lead", str(crew.workspace))
    item = ("helper", "workspace")
    await db(lambda: set_disabled(root.workspace_id, DisabledItem.Kind.AGENT, item, disabled=True, now=timezone.now()))
    after = await db(preview, "lead", str(crew.workspace))
    assert "- `helper`" in before.text and "- `helper`" not in after.text


async def test_the_route(crew: Crew, home, client: Client) -> None:  # noqa: F811
    prepare(crew.workspace)
    write_agent(
        crew.workspace / ".halo" / "agents" / "blind",
        model={"provider": "anthropic", "id": "x", "endpoint": crew.server.url, "image": False},
        tools=["grep", "view_image"],
    )
    get = sync_to_async(client.get)
    path = "/api/agent-configs/blind/prompt"
    answer = (await get(path, {"projectId": str(crew.workspace), "root": "false"})).json()
    assert answer["sections"][-1]["text"] == "Your tools: grep, continue_task. There are no others."
    assert answer["chars"] == len(answer["separator"].join(each["text"] for each in answer["sections"]))
    index = next(each for each in answer["sections"] if each["name"] == "project")
    assert index["files"] == [str(crew.workspace / ".halo" / "INDEX.md")]
    assert not answer["root"] and "modelError" not in answer
    write_agent(
        crew.workspace / ".halo" / "agents" / "lost",
        model={"provider": "openai", "id": "x", "endpoint": "https://a.example"},
    )
    lost = (await get("/api/agent-configs/lost/prompt", {"projectId": str(crew.workspace)})).json()
    assert "no API key" in lost["modelError"] and lost["sections"]
    assert (await get(path)).status_code == 400
    assert (await get(path, {"projectId": str(crew.workspace), "sessionId": "none"})).status_code == 404
