"""Opening a 1.x session: from every door it is converted once, its words are the same, and a failure is told."""

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client

from agents_app.held_session import HeldSession, SessionCache
from agents_app.runner import Runner
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.layout import WorkspaceLayout
from halo_project.redis_client import async_redis
from sessions_app import opening, queue, rounds
from sessions_app.bus import get_bus
from sessions_app.bus_local import LocalBus
from sessions_app.log.encode import clean
from sessions_app.log.paths import SessionPaths
from sessions_app.migration_notes import read_losses
from sessions_app.models import AgentSession, QueuedMessage, SessionRun, Workspace
from sessions_app.opening import LegacyConversionError, opened_paths
from sessions_app.process_identity import this_process
from sessions_app.queries import get_session, list_sessions
from sessions_app.snapshot import snapshot
from sessions_app.workspaces import open_workspace, paths_of
from tests.channels_app.ws.socket_client import Socket
from tests.sessions_app.legacy_support import rows_of, write_database, write_session
from tests.support.legacy_fixtures import contents, copy_of, manifest_sessions, peer_answers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("home")]

Open = Callable[[Client, Path, str], Any]


def get(client: Client, root: Path, session_id: str, rest: str = "", **query: str) -> Any:
    address = f"/api/sessions/logs/{quote(session_id, safe='')}{rest}"
    return client.get(address, {"projectId": str(root), **query})


# -- the doors: each opens a session and gives its rows ---------------------------------------------------------------


def by_get(client: Client, root: Path, session_id: str) -> Any:
    return refuse_or(get(client, root, session_id))["messages"]


def by_rows(client: Client, root: Path, session_id: str) -> Any:
    return refuse_or(get(client, root, session_id, "/rows", before="m3"))["rows"] + rows_of(4)[3:]


def by_archive(client: Client, root: Path, session_id: str) -> Any:
    answer = get(client, root, session_id, "/archive/1")
    if answer.status_code == 404:
        return rows_of(4)
    return refuse_or(answer)


def by_snapshot(client: Client, root: Path, session_id: str) -> Any:
    return async_to_sync(snapshot)(str(root), session_id)["recentMessages"]


def by_worker(client: Client, root: Path, session_id: str) -> Any:
    session = get_session(str(root), session_id)
    queue.enqueue(session, kind=queue.Kind.PERSON, now=utcnow(), text="hello")
    timing = django_settings.HALO_TIMING
    begun = rounds.begin(session.pk, SessionRun.Kind.TURN, this_process(), utcnow(), timing)
    assert begun is not None

    async def open_it() -> Any:
        held = await HeldSession.open(begun, LocalBus(), timing, SessionCache())
        rows = list(held.store.state.rows)
        await held.close()
        return rows

    try:
        return async_to_sync(open_it)()
    finally:
        rounds.release(begun.lease)


def refuse_or(answer: Any) -> Any:
    body = answer.json()
    if answer.status_code == 409:
        raise LegacyConversionError(body["error"], code=body["code"])
    assert answer.status_code == 200, body
    return body


DOORS = [by_get, by_rows, by_archive, by_snapshot, by_worker]


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the sessions that were converted, once for each time."""
    names: list[str] = []
    real = opening.convert

    def counted(paths: SessionPaths, *args: Any) -> Any:
        result = real(paths, *args)
        if result.outcome != "skipped":
            names.append(paths.seg)
        return result

    monkeypatch.setattr(opening, "convert", counted)
    yield names


@pytest.fixture
def legacy(workspace: Path) -> Path:
    """Two good 1.x sessions and one that is cut off."""
    names = ["good1", "good2", "broken"]
    write_database(WorkspaceLayout(workspace).legacy_database, [{"id": each, "title": each} for each in names])
    for name in names:
        path = write_session(workspace, name)
    path.write_bytes(path.read_bytes()[:200])
    return workspace


def sentence_of(error: pytest.ExceptionInfo) -> str:
    sentence = error.value.message
    assert sentence.startswith("broken: 1.x conversion failed: broken.json is no valid JSON: ")
    assert sentence.endswith(" — run `halo sessions migrate v1 v2`")
    assert error.value.code == "legacy_conversion_failed" and error.value.status == 409
    return sentence


@pytest.mark.parametrize("door", DOORS)
def test_every_door_converts_once(door: Open, client: Client, legacy: Path, converted: list[str]) -> None:
    assert door(client, legacy, "good1") == rows_of(4)
    for again in DOORS:
        assert again(client, legacy, "good1") == rows_of(4)
    assert converted == ["good1"]
    folder = WorkspaceLayout(legacy).sessions / "default"
    assert not (folder / "good1.json").exists() and (folder / "good2.json").exists()


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_a_failed_session_and_leaves_its_file(door: Open, client: Client, legacy: Path) -> None:
    before = contents(legacy)
    for _ in range(2):  # every open tries again
        with pytest.raises(LegacyConversionError) as refused:
            door(client, legacy, "broken")
        sentence_of(refused)
    assert contents(legacy) == before
    assert {each["id"] for each in list_sessions(str(legacy)).sessions} == {"good1", "good2", "broken"}
    assert door(client, legacy, "good2") == rows_of(4)


def test_listing_converts_nothing(client: Client, legacy: Path, converted: list[str]) -> None:
    before = contents(legacy)
    for archived in ("0", "1"):
        assert len(client.get("/api/sessions/logs", {"projectId": str(legacy), "includeArchived": archived}).json()["sessions"]) == 3  # fmt: skip  # noqa: E501
    open_workspace(str(legacy), utcnow())
    assert len(client.get("/api/sessions/logs", {"projectId": str(legacy)}).json()["sessions"]) == 3
    assert converted == [] and {name: contents(legacy)[name] for name in before} == before


def test_a_mended_file_opens(client: Client, legacy: Path) -> None:
    with pytest.raises(LegacyConversionError):
        by_get(client, legacy, "broken")
    write_session(legacy, "broken")
    assert by_get(client, legacy, "broken") == rows_of(4)


def test_messages_to_a_failed_session_wait_as_failed_with_the_sentence(legacy: Path) -> None:
    open_workspace(str(legacy), utcnow())
    session = get_session(str(legacy), "broken")
    queue.enqueue(session, kind=queue.Kind.PERSON, now=utcnow(), text="hello")

    async def run() -> None:
        runner = Runner(bus=LocalBus(), owner=this_process(), timing=django_settings.HALO_TIMING, slots=2)
        runner.submit(session.pk)
        async with asyncio.timeout(20):
            while await db(SessionRun.objects.exists) or not await db(_has_failed):  # noqa: ASYNC110 another room ends it
                await asyncio.sleep(0.02)

    async_to_sync(run)()
    (message,) = QueuedMessage.objects.all()
    assert message.state == QueuedMessage.State.FAILED and message.text == "hello"
    with pytest.raises(LegacyConversionError) as refused:
        opened_paths(session)
    assert message.error == sentence_of(refused)


def _has_failed() -> bool:
    return QueuedMessage.objects.filter(state=QueuedMessage.State.FAILED).exists()


def test_several_threads_that_open_it_at_once_convert_it_once(legacy: Path, converted: list[str]) -> None:
    open_workspace(str(legacy), utcnow())
    session = get_session(str(legacy), "good1")
    found: list[int] = []

    def open_it() -> None:
        try:
            found.append(opened_paths(session).ui.stat().st_size)
        finally:
            connection.close()

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 6 and len(set(found)) == 1 and converted == ["good1"]


def test_a_row_gets_from_the_file_only_what_it_lacks(workspace: Path) -> None:
    rows = [{"id": "a", "title": "kept", "exchange_count": 7}, {"id": "b"}]
    write_database(WorkspaceLayout(workspace).legacy_database, rows)
    header = {"contextTokens": 5, "totalOutputTokens": 6, "output": "o\0", "lastActivityAt": "2026-01-01T00:00:00.000Z"}
    for each in "ab":
        write_session(workspace, each, title="from the file", archivedUserCount=3, **header)
    open_workspace(str(workspace), utcnow())
    for each in "ab":
        opened_paths(get_session(str(workspace), each))
    a, b = AgentSession.objects.order_by("session_id")
    assert (a.title, a.exchange_count, b.title, b.exchange_count) == ("kept", 7, "from the file", 5)
    for row in (a, b):
        assert (row.context_tokens, row.total_output_tokens, row.output) == (5, 6, "o\ufffd")
        assert row.last_activity_at == "2026-01-01T00:00:00.000Z"


def test_a_session_that_is_being_deleted_is_not_converted(legacy: Path) -> None:
    open_workspace(str(legacy), utcnow())
    session = get_session(str(legacy), "good1")
    before = contents(legacy)
    AgentSession.objects.filter(pk=session.pk).update(deleting=True)
    with pytest.raises(LegacyConversionError, match="being deleted"):
        opened_paths(session)
    assert contents(legacy) == before


def test_only_a_temporary_file_is_told_and_not_shown_as_empty(client: Client, legacy: Path) -> None:
    path = WorkspaceLayout(legacy).sessions / "default/good1.json"
    path.rename(path.with_name("good1.json.tmp.4711.mx1v6abc"))
    with pytest.raises(LegacyConversionError, match=r"only a temporary file exists, good1\.json\.tmp\.4711"):
        by_get(client, legacy, "good1")


def test_a_read_only_workspace_refuses_to_open_and_is_listed(
    client: Client, legacy: Path, read_only: list[Path]
) -> None:
    before = contents(legacy)
    read_only.append(legacy)
    for door in DOORS:
        with pytest.raises(
            LegacyConversionError, match=r"good1: 1\.x conversion failed: .*Read-only file system — run"
        ):
            door(client, legacy, "good1")
    assert len(list_sessions(str(legacy)).sessions) == 3
    assert contents(legacy) == before


def test_a_folder_in_the_way_is_told_with_its_name(client: Client, legacy: Path) -> None:
    (WorkspaceLayout(legacy).sessions / "default/good1.raw.jsonl").mkdir()
    with pytest.raises(LegacyConversionError, match=r"failed: good1\.raw\.jsonl.*: Is a directory"):
        by_get(client, legacy, "good1")
    assert (WorkspaceLayout(legacy).sessions / "default/good1.json").exists()


def test_what_a_conversion_could_not_bring_over_is_noted_in_the_workspace(legacy: Path, client: Client) -> None:
    write_session(legacy, "good1", archiveCount=2)
    archive = WorkspaceLayout(legacy).sessions / "default/good1.arch.2.json.gz"
    archive.write_bytes(gzip.compress(json.dumps(rows_of(8)[5:]).encode()))
    by_get(client, legacy, "good1")
    (loss,) = read_losses(legacy)
    assert loss["session"] == "default/good1" and loss["loss"].startswith("archive 1 is missing")


async def test_over_the_socket_a_failed_session_is_an_error_frame_and_the_others_are_shown(
    client: Client, legacy: Path, redis_server
) -> None:
    socket = Socket(client.cookies["halo_session"].value)
    assert await socket.open()
    try:
        for name in ("broken", "good1"):
            await socket.send({"type": "subscribe", "sessionId": name, "projectId": str(legacy)})
        refused = await socket.until("error")
        assert refused["code"] == "legacy_conversion_failed" and refused["error"].startswith("broken: 1.x conversion")
        assert refused["error"].endswith(" — run `halo sessions migrate v1 v2`")
        while (shown := await socket.until("state:snapshot"))["snapshot"]["sessionId"] != "good1":
            pass
        assert shown["snapshot"]["recentMessages"] == rows_of(4)
    finally:
        await socket.close()
        await get_bus().close()
        await async_redis().aclose()


# -- the words are the ones that were there ---------------------------------------------------------------------------


def as_2_0(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """1.x rows as they are shown by 2.0: without the second copy of their calls, halves of characters replaced."""
    kept = [
        {key: value for key, value in row.items() if key != "toolCalls" or not row.get("contentBlocks")} for row in rows
    ]
    return list(clean(kept))


@pytest.mark.parametrize("folder", ["ws-a", "ws-c", "ws-e"])
def test_get_archive_and_snapshot_show_the_rows_of_before(folder: str, client: Client, tmp_path: Path) -> None:
    root = copy_of(f"v1/{folder}", tmp_path)
    peer = peer_answers(folder)["sessions"]
    entries = {entry["id"]: entry for entry in manifest_sessions(folder)}
    for session_id in set(peer) - set(entries):  # the files of an internal agent's session are not in the workspace
        assert get(client, root, session_id).status_code == peer[session_id]["get"]["status"] == 404
    for session_id, entry in entries.items():
        folder_of = WorkspaceLayout(root).sessions / entry["agentId"]
        seg = session_id.rsplit(">", 1)[-1]
        old = json.loads((folder_of / f"{seg}.json").read_bytes())
        archives = {
            number: json.loads(gzip.decompress((folder_of / f"{seg}.arch.{number}.json.gz").read_bytes()))
            for number in range(1, (old.get("archiveCount") or 0) + 1)
        }
        shown = async_to_sync(snapshot)(str(root), session_id)
        full = refuse_or(get(client, root, session_id))
        rows = as_2_0(old["messages"])
        assert full["messages"] == rows and full["rawMessages"] == clean(old.get("rawMessages", []))
        assert full["archiveCount"] == shown["archiveCount"] == len(archives)
        assert full["messageCount"] == entry["uiMessages"]
        newest = shown["recentMessages"]
        assert newest == rows[len(rows) - len(newest) :] and shown["hasOlder"] == (len(newest) < len(rows))
        for number in range(1, 4):
            answer = get(client, root, session_id, f"/archive/{number}")
            assert answer.status_code == (200 if number in archives else 404)
            if number in archives:
                assert answer.json()["messages"] == as_2_0(archives[number])
        if session_id not in peer:
            continue
        theirs = peer[session_id]
        assert len(full["messages"]) == theirs["get"]["messages"]
        assert [theirs["archive"][str(number)][0] for number in range(1, 4)] == [
            200 if number in archives else 404 for number in range(1, 4)
        ]
        if "snapshot" in theirs:
            assert shown["archiveCount"] == theirs["snapshot"]["archiveCount"]
            assert shown["agentId"] == theirs["snapshot"]["agentId"]
            assert len(newest) == theirs["snapshot"]["recentMessages"] or shown["hasOlder"]


def test_paths_of_a_session_that_was_never_1x_are_given_at_once(workspace: Path, converted: list[str]) -> None:
    row = Workspace.objects.create(path=str(workspace), created_at=utcnow())
    session = AgentSession.objects.create(
        workspace=row, session_id="new", agent_id="default", leaf_key="new", created_at=utcnow(), updated_at=utcnow()
    )
    assert opened_paths(session) == paths_of(session)
    assert converted == [] and not list(WorkspaceLayout(workspace).sessions.iterdir())
