"""The whole active log and older rows, from files as they may lie on disk."""

import hashlib
from pathlib import Path

import pytest

from halo_project.errors import NotFound
from sessions_app.full_log import older_rows, read_full_log
from sessions_app.log.records import add_record, inflight_record
from sessions_app.log.ui_log import UILog
from sessions_app.models import AgentSession
from sessions_app.workspaces import paths_of
from tests.support.session_rows import make_session, make_workspace, text_rows, write_logs

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(workspace: Path) -> AgentSession:
    return make_session(make_workspace(workspace), "abc")


def test_the_reply_in_flight_is_the_last_message(session: AgentSession) -> None:
    paths = paths_of(session)
    paths.directory.mkdir(parents=True)
    block = {"type": "text", "text": "so far", "turnId": "t1"}
    shell = {"id": "m9", "type": "assistant", "role": "assistant", "content": "so far", "timestamp": 9}
    UILog(paths.ui).rewrite([*map(add_record, text_rows(2)), inflight_record("m9", 0, [block], shell)])
    messages = read_full_log(session)["messages"]
    assert [message["id"] for message in messages] == ["m0", "m1", "m9"]
    assert messages[-1]["contentBlocks"] == [block]


def test_a_torn_last_line_is_left_out(session: AgentSession) -> None:
    write_logs(session, text_rows(2))
    with paths_of(session).ui.open("ab") as file:
        file.write(b'{"t":"add","id":"m2"')
    assert read_full_log(session)["messageCount"] == 2


def test_model_history_alone_is_shown(session: AgentSession) -> None:
    write_logs(session, [], [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])
    log = read_full_log(session)
    assert [(row["role"], row["content"]) for row in log["messages"]] == [("user", "hi"), ("assistant", "hello")]
    assert log["messageCount"] == 2
    assert len(log["rawMessages"]) == 2


def test_no_file_is_said(session: AgentSession) -> None:
    with pytest.raises(NotFound) as refused:
        read_full_log(session)
    assert refused.value.code == "log_missing"


@pytest.mark.parametrize(
    ("segments", "committed"),
    [
        ([], 0),
        ([(1, "other")], 1),
        ([(1, "other"), (2, "more")], 2),
        ([(1, "m0")], 0),  # the crash came before the active log was cut
        ([(1, "other"), (2, "m0")], 1),
        ([(1, "other"), (3, "more")], 1),  # a gap ends the count
        ([(2, "other")], 0),
    ],
)
def test_only_committed_segments_count(session: AgentSession, segments: list, committed: int) -> None:
    write_logs(session, text_rows(2))
    paths = paths_of(session)
    for number, first_id in segments:
        paths.segment(number, hashlib.sha1(first_id.encode()).hexdigest()[:12]).touch()
    assert read_full_log(session)["archiveCount"] == committed


def test_older_rows_page_by_page(session: AgentSession) -> None:
    write_logs(session, text_rows(10))
    before, pages = "m9", []
    while True:
        page = older_rows(session, before, 4)
        pages.append([row["id"] for row in page["rows"]])
        if not page["hasOlder"]:
            break
        before = page["rows"][0]["id"]
    assert pages == [["m5", "m6", "m7", "m8"], ["m1", "m2", "m3", "m4"], ["m0"]]


def test_older_rows_of_an_unknown_row(session: AgentSession) -> None:
    with pytest.raises(NotFound):
        older_rows(session, "m1", 4)
    write_logs(session, text_rows(2))
    with pytest.raises(NotFound):
        older_rows(session, "gone", 4)
