"""Migrating a whole workspace: what becomes of every session of the fixtures, of its row, and of nothing else."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.db import transaction

from halo_project.clock import utcnow
from halo_project.errors import NotFound
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.checking import check
from sessions_app.migration import ServerRuns, Summary, migrate
from sessions_app.models import AgentSession, Workspace
from sessions_app.opening import LegacyConversionError, opened_paths
from sessions_app.queries import get_session, list_sessions
from sessions_app.workspaces import open_workspace
from tests.sessions_app.legacy_support import write_database, write_session
from tests.sessions_app.test_legacy_import import check_lists
from tests.support.legacy_fixtures import FAULTY, contents, copy_of, legacy_root, states
from tests.support.session_rows import make_session

BROKEN = {
    "truncatemx1v0001": "truncatemx1v0001.json is no valid JSON",
    "emptyfilemx1v001": "emptyfilemx1v001.json is empty",
    "midbrokemx1v0001": "midbrokemx1v0001.json is no valid JSON",
    "nullfilexmx1v001": "nullfilexmx1v001.json holds null",
    "arrayfilemx1v001": "arrayfilemx1v001.json holds a list",
    "msgsstrxmx1v0001": "messages is a text and not a list",
    "tmponlyxxmx1v001": "only a temporary file exists, tmponlyxxmx1v001.json.tmp.4711.mx1v6abc",
}
SECOND = "Default/twodirsxxmx1v001"  # the half of a session that stands in another agent's folder
MIGRATED = {
    "goodsessmx1v0001", "badutf8xmx1v0001", "bombombomx1v0001", "surrogatmx1v0001", "msgsnullmx1v0001",
    "noversiomx1v0001", "noidstypmx1v0001", "dupidsxxmx1v0001", "unknownkmx1v0001", "archextramx1v001",
    "archcrashmx1v001", "archmissimx1v001", "archbadgzmx1v001", "archnotgzmx1v001", "tmpleftovmx1v001",
    "norowxxxxmx1v001", "twodirsxxmx1v001", "wrongidxxmx1v001", "orphansubmx1v001", "anh5ui3gmx1ve47j",
}  # fmt: skip
SEGMENTS = {"archextramx1v001": 2, "archcrashmx1v001": 1, "archmissimx1v001": 1, "archbadgzmx1v001": 1, "archnotgzmx1v001": 2}  # fmt: skip  # noqa: E501


def run(root: Path, **options) -> Summary:
    return migrate(str(root), utcnow(), **options)


def counts(summary: Summary) -> tuple[int, int, int, int]:
    return summary.migrated, summary.cleaned, summary.skipped, len(summary.failed)


# -- the workspace full of damage -------------------------------------------------------------------------------------


@dataclass
class Faulty:
    root: Path
    before: dict[str, bytes]
    rehearsal: Summary
    touched_by_rehearsal: bool
    summary: Summary

    def after(self, name: str) -> list[str]:
        folder = WorkspaceLayout(self.root).sessions / "default"
        return sorted(path.name for path in folder.iterdir() if path.name.startswith(f"{name}.") and path.is_file())


@pytest.fixture(scope="class")
def faulty(tmp_path_factory, django_db_setup, django_db_blocker) -> Iterator[Faulty]:
    """Rehearsed, then migrated, once for the tests of a class; they only look at it."""
    folder = tmp_path_factory.mktemp("faulty")
    own_home, kept = HomeLayout(folder.resolve() / "home"), django_settings.HALO_HOME
    own_home.prepare()
    django_settings.HALO_HOME = own_home
    try:
        with django_db_blocker.unblock(), transaction.atomic():
            root = copy_of(FAULTY, folder)
            before, kept_states = contents(root), states(root)
            rehearsal = run(root, dry_run=True)
            touched = states(root) != kept_states or AgentSession.objects.exists() or Workspace.objects.exists()
            yield Faulty(root, before, rehearsal, touched, run(root))
            transaction.set_rollback(True)
    finally:
        django_settings.HALO_HOME = kept


@pytest.mark.django_db
class TestFaulty:
    def test_counts(self, faulty: Faulty) -> None:
        assert counts(faulty.summary) == (len(MIGRATED), 0, 1, len(BROKEN) + 1)
        assert faulty.summary.bytes_read > 8_000_000

    def test_every_failure_is_named_with_its_reason(self, faulty: Faulty) -> None:
        failed = dict(faulty.summary.failed)
        assert failed.pop(SECOND) == "the same session exists in another agent folder (default)"
        assert set(failed) == {f"default/{name}" for name in BROKEN}
        for name, reason in BROKEN.items():
            assert reason in failed[f"default/{name}"]

    @pytest.mark.parametrize("name", [*BROKEN, SECOND])
    def test_what_failed_is_untouched_and_has_no_new_file(self, faulty: Faulty, name: str) -> None:
        name = f".halo/sessions/{name if '/' in name else f'default/{name}'}."
        now = {path: data for path, data in contents(faulty.root).items() if path.startswith(name)}
        assert now == {path: data for path, data in faulty.before.items() if path.startswith(name)}
        assert now

    @pytest.mark.parametrize("name", sorted(MIGRATED))
    def test_what_was_migrated_has_only_new_files(self, faulty: Faulty, name: str) -> None:
        files = faulty.after(name)
        kept = ["archbadgzmx1v001.arch.2.json.gz"] if name == "archbadgzmx1v001" else []
        segments = [each for each in files if ".ui.arch." in each]
        assert files == sorted([*kept, *segments, f"{name}.raw.jsonl", f"{name}.ui.jsonl"])
        assert len(segments) == SEGMENTS.get(name, 0)
        assert [each.split(".ui.arch.")[1].split(".")[0] for each in segments] == [
            str(number) for number in range(1, len(segments) + 1)
        ]

    def test_the_folder_named_like_a_session_is_ignored(self, faulty: Faulty) -> None:
        assert (WorkspaceLayout(faulty.root).sessions / "default/dirnamed.json").is_dir()
        assert not AgentSession.objects.filter(session_id="dirnamed").exists()
        assert "dirnamed" not in str(faulty.summary)

    def test_a_session_without_a_row_gets_one_from_its_header(self, faulty: Faulty) -> None:
        old = json.loads(faulty.before[".halo/sessions/default/norowxxxxmx1v001.json"])
        row = AgentSession.objects.get(session_id="norowxxxxmx1v001")
        assert (row.title, row.agent_id, row.agent_name) == (old["title"], "default", old["agentName"])
        assert (row.context_tokens, row.total_output_tokens) == (old["contextTokens"], old["totalOutputTokens"])
        assert row.created_at.isoformat(timespec="milliseconds") == old["createdAt"].replace("Z", "+00:00")
        assert row.exchange_count == 3

    def test_a_row_without_files_stays_and_is_reported(self, faulty: Faulty) -> None:
        assert AgentSession.objects.filter(session_id="rowonlyxxmx1v001").exists()
        assert ("no_files", "default/rowonlyxxmx1v001") in {(one.kind, one.session) for one in check_of(faulty)}

    def test_the_file_name_is_the_identity(self, faulty: Faulty) -> None:
        assert AgentSession.objects.filter(session_id="wrongidxxmx1v001").exists()

    def test_an_orphan_is_listed_at_the_top_and_reported(self, faulty: Faulty) -> None:
        row = AgentSession.objects.get(leaf_key="orphansubmx1v001")
        assert row.parent_session_id is None and row.lost_parent_id
        roots = list_sessions(str(faulty.root), root_only=True, limit=500).sessions
        assert row.session_id in [each["id"] for each in roots]
        orphans = [one for one in check_of(faulty) if one.kind == "orphan"]
        assert [one.session for one in orphans] == [f"default/{row.session_id}"]
        assert row.lost_parent_id in orphans[0].detail

    def test_losses_are_in_the_summary_and_in_the_check(self, faulty: Faulty) -> None:
        lost = dict(faulty.summary.losses)
        assert set(lost) == {"default/archmissimx1v001", "default/archbadgzmx1v001"}
        assert "missing" in lost["default/archmissimx1v001"] and "stays" in lost["default/archbadgzmx1v001"]
        assert {(one.session, one.detail) for one in check_of(faulty) if one.kind == "lost"} == set(lost.items())

    def test_repairs_are_noted(self, faulty: Faulty) -> None:
        notes = dict(faulty.summary.notes)
        for name, word in {
            "badutf8xmx1v0001": "U+FFFD", "bombombomx1v0001": "byte order mark", "surrogatmx1v0001": "lone surrogates",
            "noidstypmx1v0001": "without an id", "dupidsxxmx1v0001": "shared an id",
        }.items():  # fmt: skip
            assert word in notes[f"default/{name}"]

    def test_the_check_names_what_is_left_of_1x(self, faulty: Faulty) -> None:
        left = {one.session for one in check_of(faulty) if one.kind == "legacy"}
        assert left == {SECOND, *(f"default/{name}" for name in BROKEN)}

    @pytest.mark.parametrize("name", list(BROKEN))
    def test_opening_what_failed_is_refused_with_the_sentence(self, faulty: Faulty, name: str) -> None:
        with pytest.raises(LegacyConversionError) as refused:
            opened_paths(get_session(str(faulty.root), name))
        sentence = refused.value.message
        assert sentence.startswith(f"{name}: 1.x conversion failed: ") and BROKEN[name] in sentence
        assert sentence.endswith(" — run `halo sessions migrate v1 v2`")

    def test_what_was_migrated_opens(self, faulty: Faulty) -> None:
        for name in MIGRATED:
            row = AgentSession.objects.get(leaf_key=name)
            assert opened_paths(get_session(str(faulty.root), row.session_id)).ui.exists()

    def test_the_rehearsal_says_the_same_and_touches_nothing(self, faulty: Faulty) -> None:
        assert not faulty.touched_by_rehearsal
        assert counts(faulty.rehearsal) == counts(faulty.summary)
        assert faulty.rehearsal.losses == faulty.summary.losses
        assert faulty.rehearsal.notes == faulty.summary.notes
        assert faulty.rehearsal.failed == faulty.summary.failed

    def test_a_second_run_only_fails_again(self, faulty: Faulty) -> None:
        before = states(faulty.root)
        again = run(faulty.root)
        assert counts(again) == (0, 0, len(MIGRATED) + 1, len(BROKEN) + 1)
        assert again.failed == faulty.summary.failed and not again.losses
        assert counts(run(faulty.root, dry_run=True)) == counts(again)
        assert states(faulty.root) == before


def check_of(faulty: Faulty) -> list:
    return check(str(faulty.root)).problems


# -- healthy workspaces -----------------------------------------------------------------------------------------------

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.django_db
class TestHealthy:
    @pytest.mark.parametrize(("folder", "migrated", "skipped"), [("ws-a", 30, 1), ("ws-c", 7, 0), ("ws-e", 4, 0)])
    @pytest.mark.parametrize("opened_before", [False, True])
    def test_lists_after_a_migration_are_the_originals(
        self, folder: str, migrated: int, skipped: int, opened_before: bool, tmp_path: Path
    ) -> None:
        root = copy_of(f"v1/{folder}", tmp_path)
        if opened_before:
            open_workspace(str(root), utcnow())
        assert counts(run(root, dry_run=True)) == (migrated, 0, skipped, 0)
        assert counts(run(root)) == (migrated, 0, skipped, 0)
        check_lists(folder, root)
        assert not list(root.rglob("*.json")) and not list(root.rglob("*.json.gz"))
        assert counts(run(root)) == (0, 0, migrated + skipped, 0)

    def test_the_internal_sessions_are_migrated_too_and_alone(self, tmp_path: Path, home: HomeLayout) -> None:
        internal = home.internal_sessions
        folder = internal / "__score__"
        folder.mkdir(parents=True)
        source = legacy_root() / "v1/internal-sessions/__score__/evo-score-tyyrg5.json"
        (folder / source.name).write_bytes(source.read_bytes())
        root = copy_of("v1/ws-a", tmp_path)
        assert counts(run(root, dry_run=True)) == (31, 0, 1, 0)
        assert counts(run(internal, dry_run=True)) == (1, 0, 0, 0)
        assert counts(run(root)) == (31, 0, 1, 0)
        row = AgentSession.objects.get(workspace__path=str(internal))
        assert (row.session_id, row.agent_id, row.title) == ("evo-score-tyyrg5", "__score__", "score this patch please")
        assert check(str(internal)).is_good and check(str(root)).is_good
        assert counts(run(internal)) == (0, 0, 1, 0)

    def test_progress_counts_every_session(self, tmp_path: Path) -> None:
        seen: list[tuple[int, int, str]] = []
        run(copy_of("v1/ws-e", tmp_path), progress=lambda *step: seen.append(step))
        assert [done for done, _, _ in seen] == [0, 1, 2, 3, 4] and {total for _, total, _ in seen} == {4}
        assert seen[0][2] == "deep-executor/sid_mx1wfs0y_dkkgrn" and seen[-1][2] == ""

    def test_a_conversion_cut_off_after_its_commit_is_finished(self, workspace: Path) -> None:
        write_database(WorkspaceLayout(workspace).legacy_database, [{"id": "a"}])
        path = write_session(workspace, "a")
        data = path.read_bytes()
        assert counts(run(workspace)) == (1, 0, 0, 0)
        path.write_bytes(data)
        assert counts(run(workspace, dry_run=True)) == (0, 1, 0, 0) and path.exists()
        assert counts(run(workspace)) == (0, 1, 0, 0) and not path.exists()

    def test_sub_sessions_without_rows_get_their_whole_ids(self, workspace: Path) -> None:
        write_session(workspace, "root")
        write_session(workspace, "sid_1", id="root>sid_1", parentSessionId="root")
        write_session(workspace, "sid_2", id="gone>sid_2", parentSessionId="gone")
        assert counts(run(workspace)) == (3, 0, 0, 0)
        found = AgentSession.objects.values_list("session_id", "parent_session_id", "lost_parent_id").order_by("pk")
        assert list(found) == [("root", None, None), ("root>sid_1", "root", None), ("gone>sid_2", None, "gone")]

    def test_a_parent_that_gets_its_row_later_is_found(self, workspace: Path) -> None:
        write_session(workspace, "sid_1", id="zroot>sid_1", parentSessionId="zroot")
        write_session(workspace, "zroot")
        assert counts(run(workspace)) == (2, 0, 0, 0)
        sub = AgentSession.objects.get(session_id="zroot>sid_1")
        assert (sub.parent_session_id, sub.lost_parent_id) == ("zroot", None)

    def test_two_files_whose_names_differ_in_case_stop_nothing(self, workspace: Path) -> None:
        for name in ("ABC", "abc", "other"):
            write_session(workspace, name)
        summary = run(workspace)
        assert counts(summary) == (2, 0, 0, 1)
        ((name, reason),) = summary.failed
        assert name == "default/abc" and "same names on some disks" in reason
        assert (WorkspaceLayout(workspace).sessions / "default/abc.json").exists()

    def test_a_file_in_another_agents_folder_than_its_row_says_fails(self, workspace: Path) -> None:
        write_database(WorkspaceLayout(workspace).legacy_database, [{"id": "a", "agent_id": "other"}])
        write_session(workspace, "a")
        summary = run(workspace)
        assert summary.failed == [("default/a", "its row names another agent (other); move the file to its folder")]

    def test_a_deleted_session_does_not_come_back(self, tmp_path: Path) -> None:
        root = copy_of("v1/ws-e", tmp_path)
        run(root)
        AgentSession.objects.filter(session_id="nyczfi57mx1wfxlf").delete()
        for path in root.rglob("nyczfi57mx1wfxlf.*"):
            path.unlink()
        assert counts(run(root, dry_run=True)) == counts(run(root)) == (0, 0, 3, 0)
        assert AgentSession.objects.count() == 3

    def test_a_damaged_database_is_named_and_the_files_still_come_over(self, workspace: Path) -> None:
        WorkspaceLayout(workspace).legacy_database.write_bytes(b"damaged" * 1000)
        write_session(workspace, "a", title="from the file")
        rehearsal, summary = run(workspace, dry_run=True), run(workspace)
        assert counts(rehearsal) == counts(summary) == (1, 0, 0, 1)
        assert summary.failed[0][0] == "halo.db" and "get their rows from their files" in summary.failed[0][1]
        assert AgentSession.objects.get().title == "from the file"

    def test_a_disk_that_refuses_names_the_file_and_goes_on(self, workspace: Path) -> None:
        for name in ("a", "b"):
            write_session(workspace, name)
        (WorkspaceLayout(workspace).sessions / "default/a.ui.jsonl").mkdir()
        summary = run(workspace)
        assert counts(summary)[0] == 1
        ((name, reason),) = summary.failed
        assert name == "default/a" and "a.ui.jsonl" in reason and str(workspace) not in reason
        assert (WorkspaceLayout(workspace).sessions / "default/a.json").exists()

    def test_links_and_pipes_in_the_place_of_1x_files_fail_and_nothing_of_them_is_touched(
        self, workspace: Path
    ) -> None:
        real = write_session(workspace, "real")
        link = real.with_name("link.json")
        link.symlink_to(real)
        write_session(workspace, "piped", archiveCount=1)
        os.mkfifo(real.with_name("piped.arch.1.json.gz"))
        summary = migrate(str(workspace), utcnow())
        assert summary.migrated == 1
        assert [name for name, _ in summary.failed] == ["default/link", "default/piped"]
        assert all("no plain file" in reason for _, reason in summary.failed)
        assert link.is_symlink() and real.with_name("piped.json").is_file()

    def test_a_folder_that_is_no_workspace_is_refused(self, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "missing"):
            with pytest.raises(NotFound):
                run(path)
        assert list(tmp_path.glob(".halo")) == []

    def test_rows_already_here_are_kept(self, workspace: Path) -> None:
        write_session(workspace, "a", title="from the file", contextTokens=5)
        make_session(open_workspace(str(workspace), utcnow()), "a", title="mine", exchange_count=8)
        assert counts(run(workspace)) == (1, 0, 0, 0)
        row = AgentSession.objects.get()
        assert (row.title, row.exchange_count, row.context_tokens) == ("mine", 8, 5)


@pytest.mark.django_db
def test_beside_a_live_server_it_is_refused_and_beside_a_dead_one_not(workspace: Path) -> None:
    write_session(workspace, "a")
    lock = WorkspaceLayout(workspace).runtime_lock
    for dry_run in (True, False):
        lock.write_text(str(os.getpid()))
        with pytest.raises(ServerRuns, match=f"process {os.getpid()}"):
            run(workspace, dry_run=dry_run)
        lock.write_text(str(2**22 + 1))
        assert counts(run(workspace, dry_run=dry_run)) == (1, 0, 0, 0)


@pytest.mark.django_db
def test_the_1x_database_is_left_as_it_is(tmp_path: Path) -> None:
    root = copy_of("v1/ws-e", tmp_path)
    before = {path.name: path.read_bytes() for path in WorkspaceLayout(root).halo_dir.glob("halo.db*")}
    run(root)
    assert {path.name: path.read_bytes() for path in WorkspaceLayout(root).halo_dir.glob("halo.db*")} == before
    with closing(sqlite3.connect(WorkspaceLayout(root).legacy_database)) as database:
        assert database.execute("SELECT count(*) FROM agent_sessions").fetchone() == (4,)
