from pathlib import Path

import pytest

from halo_project.errors import BadRequest
from sessions_app.log.paths import SessionPaths, session_paths


def test_the_leaf_names_the_files_in_the_agents_folder():
    paths = session_paths(Path("/w/.halo/sessions"), "default", "root>sid_1_abc")
    assert paths == SessionPaths(Path("/w/.halo/sessions/default"), "sid_1_abc")
    assert paths.ui.name == "sid_1_abc.ui.jsonl"
    assert paths.raw.name == "sid_1_abc.raw.jsonl"
    assert paths.migrating.name == "sid_1_abc.migrating"
    assert paths.legacy.name == "sid_1_abc.json"


@pytest.mark.parametrize(
    ("agent_id", "session_id"), [("..", "a"), ("a", "x>.."), ("a/b", "c"), ("a", "b/c"), ("", "a"), ("a", "b>")]
)
def test_ids_that_would_leave_the_folder_are_refused(agent_id, session_id):
    with pytest.raises(BadRequest):
        session_paths(Path("/w"), agent_id, session_id)


def test_segments_are_listed_by_number(tmp_path):
    paths = SessionPaths(tmp_path, "a")
    for number in (10, 2, 1):
        paths.segment(number, "0123456789ab").touch()
    for other in (
        "a.ui.arch.3.0123456789ab.jsonl.gz.tmp.1.2",
        "a.ui.arch.x.0123456789ab.jsonl.gz",
        "b.ui.arch.1.0123456789ab.jsonl.gz",
    ):
        (tmp_path / other).touch()
    assert [(segment.number, segment.first_id_hash) for segment in paths.segments()] == [
        (1, "0123456789ab"), (2, "0123456789ab"), (10, "0123456789ab"),
    ]  # fmt: skip
    assert SessionPaths(tmp_path / "none", "a").segments() == []


def test_the_files_of_a_session_are_all_its_own_and_nobody_elses(tmp_path):
    own = [
        "a.ui.jsonl", "a.raw.jsonl", "a.migrating", "a.json", "a.arch.1.json.gz", "a.ui.arch.12.0123456789ab.jsonl.gz",
        "a.ui.jsonl.tmp.77.1790000000000", "a.json.tmp.1", "a.raw.jsonl.tmp.1.2", "a.raw.jsonl.tail",
    ]  # fmt: skip
    others = ["a.ui.ui.jsonl", "a.b.raw.jsonl", "ab.ui.jsonl", "a.txt", "xa.json", "a.ui.jsonl.ui.jsonl",
        "a.ui.jsonl.tmp.1.ui.jsonl", "a.json.tmp.x.raw.jsonl", "a.raw.jsonl.tmp.1.2.json",
        "a.raw.jsonl.tail.ui.jsonl", "a.tail",
    ]  # fmt: skip
    for name in own + others:
        (tmp_path / name).touch()
    assert [path.name for path in SessionPaths(tmp_path, "a").files()] == sorted(own)
