"""Slash commands over the browser's socket: answered to the one who asked, written nowhere."""

import base64
import shutil
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async

from agents_app.config.files import BUNDLED
from sessions_app.models import AgentSession, QueuedMessage
from tests.channels_app.ws.socket_client import Socket, opened
from tests.support.image_files import png
from tests.support.session_rows import hold, make_session, make_workspace

pytestmark = pytest.mark.django_db(transaction=True)


def chat(workspace: Path, **fields) -> dict:
    return {"type": "chat", "projectId": str(workspace), **fields}


async def answered(socket: Socket, workspace: Path, text: str, **fields) -> list[dict]:
    """The frames that come of a command, up to its acknowledgement."""
    before = len(socket.frames)
    await socket.send(chat(workspace, message=text, clientMsgId=text, **fields))
    await socket.until("chat:ack", clientMsgId=text)
    return socket.frames[before:]


async def queued() -> list[str]:
    return [row.text async for row in QueuedMessage.objects.order_by("pk")]


async def test_a_command_is_answered_to_its_sender_alone_and_kept_nowhere(make, home, workspace):
    row = await sync_to_async(make_workspace)(workspace)
    await sync_to_async(make_session)(row, "s1")
    async with opened(make) as socket, opened(make) as other:
        for each in (socket, other):
            await each.send({"type": "subscribe", "sessionId": "s1", "projectId": str(workspace)})
            await each.until("state:snapshot")
        system, ack = await answered(socket, workspace, "/session list", sessionId="s1")
        assert system == {"type": "chat:system", "sessionId": "s1", "text": system["text"], "command": "/session list"}
        assert "Title of s1" in system["text"]
        assert ack == {"type": "chat:ack", "clientMsgId": "/session list", "sessionId": "s1", "rowId": None}
        assert await other.is_quiet()
        await socket.send({"type": "subscribe", "sessionId": "s1", "projectId": str(workspace)})
        assert (await socket.until("state:snapshot"))["snapshot"]["recentMessages"] == []
    assert await queued() == []
    assert not any((workspace / ".halo" / "sessions").rglob("*.jsonl"))


async def test_a_command_before_any_session_makes_none(make, home, workspace):
    async with opened(make) as socket:
        system, ack = await answered(socket, workspace, "/help")
        assert "sessionId" not in system and ack["sessionId"] is None and "/session" in system["text"]
    assert await AgentSession.objects.acount() == 0


async def test_a_switch_names_the_session_before_the_notice_that_is_shown_there(make, home, workspace):
    row = await sync_to_async(make_workspace)(workspace)
    await sync_to_async(make_session)(row, "s1")
    async with opened(make) as socket:
        switched, system, _ = await answered(socket, workspace, "/session switch 1", sessionId="s9")
        assert switched == {"type": "session:switched", "sessionId": "s1", "projectId": str(workspace)}
        assert system["sessionId"] == "s1"
        switched, system, _ = await answered(socket, workspace, "/agent switch default", sessionId="s1")
        assert switched["agentId"] == "default" and switched["sessionId"] == system["sessionId"] != "s1"


async def test_another_workspace_is_named_with_a_session_to_come(make, home, workspace, tmp_path):
    (tmp_path / "other").mkdir()
    async with opened(make) as socket:
        switched, *_ = await answered(socket, workspace, f"/workspace switch {tmp_path / 'other'}", sessionId="s1")
        assert switched["projectId"] == str((tmp_path / "other").resolve()) and switched["sessionId"] != "s1"


async def test_a_command_frame_is_the_message_that_says_the_same(make, home, workspace):
    async with opened(make) as socket:
        named = {"sessionId": "s1", "projectId": str(workspace)}
        await socket.send({"type": "command:session", "args": "list", **named})
        assert (await socket.until("chat:system"))["text"] == "There are no sessions yet."
        assert await socket.is_quiet()  # nothing to acknowledge without a clientMsgId
        await socket.send({"type": "command:help", "clientMsgId": "c", "projectId": str(workspace)})
        await socket.until("chat:ack", clientMsgId="c")
        for frame in ({"type": "command:"}, {"type": "command:a/b"}, {"type": "command:help", "args": ["x"]}):
            await socket.send({**frame, **named})
            assert (await socket.until("error"))["code"] in ("unknown_type", "bad_field")
        await socket.send({"type": "command:tool", "args": "ls", "clientMsgId": "d", **named})
        assert (await socket.until("chat:ack", clientMsgId="d"))["rowId"]
    assert await queued() == ["/tool ls"]


async def test_what_is_no_command_of_ours_is_said_to_the_agent(make, home, workspace):
    texts = ["/tool shell_exec {}", "/home/me is full", "say /help", "/"]
    async with opened(make) as socket:
        for text in texts:
            ack = (await answered(socket, workspace, text, sessionId="s1"))[-1]
            assert ack["rowId"]
    assert await queued() == texts


async def test_the_short_form_of_a_skills_verb_reaches_the_agent_written_out(make, home, workspace):
    shutil.copy(BUNDLED / "seed" / "aliases.yaml", home.global_dir / "aliases.yaml")
    folder = workspace / ".halo" / "skills" / "agent"
    folder.mkdir(parents=True)
    front = "name: agent\ndescription: Agents\ncommand: /agent\nverbs: [{name: create}]"
    (folder / "SKILL.md").write_text(f"---\n{front}\n---\nDo it.\n")
    own = workspace / ".halo" / "agents" / "lead"
    own.mkdir(parents=True)
    (own / "agent.yaml").write_text("name: Lead\nmodel: auto\npriority: 200\nskills: [agent]\n")
    async with opened(make) as socket:
        await answered(socket, workspace, "/a create a reviewer", sessionId="s1")
    assert await queued() == ["/agent create a reviewer"]


async def test_a_message_with_images_is_never_a_command(make, home, workspace):
    async with opened(make) as socket:
        images = [{"data": base64.b64encode(png()).decode()}]
        assert (await answered(socket, workspace, "/help", sessionId="s1", images=images))[-1]["rowId"]
    assert await queued() == ["/help"]


async def test_compaction_is_queued_once_and_refused_in_words_while_the_agent_works(make, home, workspace):
    row = await sync_to_async(make_workspace)(workspace)
    session = await sync_to_async(make_session)(row, "s1")
    async with opened(make) as socket:
        for _ in range(2):  # as a page does that lost the acknowledgement
            system, ack = await answered(socket, workspace, "/session compact", sessionId="s1")
            assert system["text"].startswith("Looking for what can be made shorter") and ack["rowId"] is None
        assert [each.control async for each in QueuedMessage.objects.all()] == ["compact"]
        await sync_to_async(hold)(session)
        await socket.send(chat(workspace, message=" /session compact\n", clientMsgId="again", sessionId="s1"))
        assert "at work" in (await socket.until("chat:system"))["text"]


async def test_the_language_is_that_of_the_settings(make, home, workspace):
    home.settings_yaml.write_text("general: {language: zh-CN}\n")
    async with opened(make) as socket:
        system, _ = await answered(socket, workspace, "/session list")
        assert system["text"] == "还没有会话。"
        home.settings_yaml.write_text("general: [\n")
        system, _ = await answered(socket, workspace, "/session list ")
        assert system["text"] == "There are no sessions yet."
