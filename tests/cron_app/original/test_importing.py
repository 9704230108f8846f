"""The original's `cron.db` of every version, taken in: its jobs, its runs, and what does not hold of them."""

import hashlib
import io
import json
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django_celery_beat.models import PeriodicTask

from cron_app.models import CronJob, CronRun
from cron_app.original.importing import Summary, import_cron
from halo_project.errors import HaloError, NotFound
from sessions_app.identifiers import base36
from sessions_app.log.legacy.document import LegacyUnreadable
from tests.cron_app.original.original_cron import JOB_ID, NOW_MS, OriginalDatabase

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("home")]

NOW = datetime.fromtimestamp(NOW_MS / 1000, UTC)
HOUR_MS = 3_600_000
RUN_ID = "2027-01-15T07-59-55-000Z-a1b2c3"


def taken(database: OriginalDatabase) -> Summary:
    return import_cron(database.path, NOW)


def job(job_id: str = JOB_ID) -> CronJob:
    return CronJob.objects.get(pk=job_id)


def ms(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


@pytest.fixture
def newest(tmp_path: Path) -> OriginalDatabase:
    return OriginalDatabase(tmp_path / "cron.db", 6)


class TestVersions:
    @pytest.mark.parametrize(("version", "columns"), [(0, 0), (0, 1), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6)])
    def test_a_job_and_its_run(self, version: int, columns: int, tmp_path: Path, workspace: Path) -> None:
        database = OriginalDatabase(tmp_path / "cron.db", version, columns)
        targets = [{"channelType": "telegram", "accountId": "1", "chatId": "42"}]
        database.job(workspace, timezone="Asia/Kolkata", targets=json.dumps(targets))
        database.run(RUN_ID, dispatch_results=json.dumps([{**targets[0], "ok": False, "error": "gone"}]))
        undelivered = "Its answer cannot be sent by telegram yet: no such door is there."
        assert taken(database) == Summary(jobs=1, runs=1, notes=[(JOB_ID, undelivered)])
        found = job()
        assert (found.label, found.user_prompt, found.agent_id) == ("Morning", "Report.", "default")
        assert (found.workspace_path, found.schedule, found.timezone) == (str(workspace), "0 9 * * *", "Asia/Kolkata")
        assert (found.targets, found.enabled, found.access_level) == (targets, True, "full")
        assert (ms(found.created_at), ms(found.updated_at)) == (NOW_MS - 9, NOW_MS - 8)
        assert found.next_due == datetime(2027, 1, 16, 3, 30, tzinfo=UTC)  # 9:00 in Kolkata
        assert PeriodicTask.objects.get().clocked.clocked_time == found.next_due
        run = CronRun.objects.get()
        assert (run.pk, run.job_id, run.status, run.output, run.due) == (RUN_ID, JOB_ID, "succeeded", "Done.", None)
        assert (ms(run.started_at), ms(run.completed_at)) == (NOW_MS - 5000, NOW_MS - 4000)
        assert run.dispatch_results == [{**targets[0], "error": "gone", "ok": False}]

    @pytest.mark.parametrize("version", range(7))
    @pytest.mark.parametrize("status", [None, "succeeded", "running", "skipped"])
    def test_who_spoke_in_a_session_of_the_old_name_stays_there(
        self, version: int, status: str | None, tmp_path: Path, workspace: Path
    ) -> None:
        database = OriginalDatabase(tmp_path / "cron.db", version)
        database.job(workspace)
        database.job(workspace, "cron-noted", last_run_id=RUN_ID, last_run_status="succeeded", last_run_at=NOW_MS - 5)
        if status is not None:
            database.run(RUN_ID, status=status)
        taken(database)
        old = version < 4
        assert job().session_id == (f"cron-{JOB_ID}" if old and status in ("succeeded", "running") else None)
        assert job("cron-noted").session_id == ("cron-cron-noted" if old else None)

    def test_a_picked_session_is_kept(self, tmp_path: Path, workspace: Path) -> None:
        database = OriginalDatabase(tmp_path / "cron.db", 3)
        database.job(workspace, session_id="abc", last_run_id=RUN_ID)
        taken(database)
        assert job().session_id == "abc"

    @pytest.mark.parametrize(("version", "noted", "kept"), [(5, None, True), (6, None, False), (6, "/else", "/else")])
    def test_where_a_run_was(self, version: int, noted: str | None, kept: Any, tmp_path: Path, workspace: Path) -> None:
        database = OriginalDatabase(tmp_path / "cron.db", version)
        database.job(workspace)
        database.run(RUN_ID, **({"workspace_path": noted} if noted else {}))
        database.run("orphan", job_id="cron-gone")
        taken(database)
        assert CronRun.objects.get(pk=RUN_ID).workspace_path == (str(workspace) if kept is True else kept or None)
        assert CronRun.objects.get(pk="orphan").workspace_path is None

    def test_what_came_with_2_0(self, newest: OriginalDatabase, workspace: Path) -> None:
        (workspace / "src").mkdir()
        newest.job(
            workspace, working_dir="src", stateless=1, access_level="workspace", active_from=NOW_MS + HOUR_MS * 48,
            active_until=NOW_MS + HOUR_MS * 96, timezone="UTC",
        )  # fmt: skip
        assert taken(newest) == Summary(jobs=1)
        found = job()
        assert (found.working_dir, found.stateless, found.access_level) == ("src", True, "workspace")
        assert ms(found.active_until) == NOW_MS + HOUR_MS * 96
        assert found.next_due == datetime(2027, 1, 17, 9, tzinfo=UTC)

    def test_the_session_of_one_run_is_known_as_such(self, newest: OriginalDatabase, workspace: Path) -> None:
        newest.job(workspace, "cron-a", stateless=1)
        newest.job(workspace, "cron-a-b")
        newest.run("r1", "cron-a", session_id=f"cron-a-{base36(NOW_MS - 4900)}")
        newest.run("r2", "cron-a", session_id="cron-a-b")
        newest.run("r3", "cron-a-b", session_id="cron-a-b")
        newest.run("r4", "cron-a", session_id=f"cron-a-{base36(NOW_MS - HOUR_MS)}")
        taken(newest)
        assert dict(CronRun.objects.values_list("pk", "per_run_session")) == {
            "r1": True, "r2": False, "r3": False, "r4": False,
        }  # fmt: skip


class TestAgain:
    def test_a_second_import_changes_nothing(self, newest: OriginalDatabase, workspace: Path) -> None:
        newest.job(workspace)
        newest.job(workspace, "cron-past", schedule="", run_at=NOW_MS - 1)
        newest.run(RUN_ID, status="running")
        first = taken(newest)
        assert (first.jobs, first.runs) == (2, 1)
        CronJob.objects.filter(pk=JOB_ID).update(label="Mine")
        before = list(CronJob.objects.values()), list(CronRun.objects.values()), list(PeriodicTask.objects.values())
        later = import_cron(newest.path, NOW + timedelta(days=1))
        assert later == Summary(known_jobs=2, known_runs=1)
        assert before == (
            list(CronJob.objects.values()), list(CronRun.objects.values()), list(PeriodicTask.objects.values()),
        )  # fmt: skip

    def test_what_came_since_is_taken_in(self, newest: OriginalDatabase, workspace: Path) -> None:
        newest.job(workspace)
        taken(newest)
        newest.job(workspace, "cron-new")
        newest.run(RUN_ID)
        assert taken(newest) == Summary(jobs=1, runs=1, known_jobs=1)

    def test_the_file_is_only_read_and_its_log_counts(self, tmp_path: Path, workspace: Path) -> None:
        database = OriginalDatabase(tmp_path / "source.db", 6)
        connection = sqlite3.connect(database.path)  # an open reader: what is written stays in the log
        connection.execute("SELECT 1 FROM cron_jobs").fetchall()
        database.job(workspace)
        folder = tmp_path / "copy"
        folder.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{database.path}{suffix}", folder / f"cron.db{suffix}")
        connection.close()
        assert (folder / "cron.db-wal").stat().st_size > 0
        before = _digests(folder)
        assert import_cron(folder / "cron.db", NOW).jobs == 1
        assert _digests(folder) == before


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


class TestRuns:
    @pytest.mark.parametrize(
        ("status", "becomes", "reason"),
        [
            ("succeeded", "succeeded", None),
            ("failed", "failed", None),
            ("timeout", "timeout", None),
            ("skipped", "skipped", None),
            ("missed", "missed", None),
            ("running", "failed", "The original program did not note how this run ended."),
            ("pending", "failed", "The original program noted 'pending' of this run, which means nothing here."),
        ],
    )
    def test_how_it_ended(
        self, status: str, becomes: str, reason: str | None, newest: OriginalDatabase, workspace: Path
    ) -> None:
        newest.run(RUN_ID, status=status, completed_at=None if status == "running" else NOW_MS - 4000)
        taken(newest)
        run = CronRun.objects.get()
        assert (run.status, run.failure_reason) == (becomes, reason)
        assert run.completed_at == (NOW if status == "running" else NOW - timedelta(seconds=4))

    @pytest.mark.parametrize(
        "wrong",
        [{"started_at": -1}, {"started_at": 2**62}, {"started_at": "soon"}, {"id": "a/b"}, {"id": "x" * 65},
         {"job_id": ""}, {"job_id": "../x"}],
    )  # fmt: skip
    def test_what_cannot_be_a_run_is_left_out(self, wrong: dict[str, Any], newest: OriginalDatabase) -> None:
        newest.run(**{"run_id": RUN_ID, **{("run_id" if key == "id" else key): value for key, value in wrong.items()}})
        newest.run("good")
        found = taken(newest)
        assert found.runs == 1 and [sentence for _, sentence in found.left_out] == [
            "Its id, its job or its start is none that can be."
        ]

    @pytest.mark.parametrize("results", ["", "{", "[1]", "{}", "[" * 100_000, '"x"'])
    def test_results_that_cannot_be_read_are_none(self, results: str, newest: OriginalDatabase) -> None:
        newest.run(RUN_ID, dispatch_results=results, output="a\0b", trigger_kind="manual", completed_at=2**60)
        assert taken(newest).runs == 1
        run = CronRun.objects.get()
        assert (run.dispatch_results, run.output, run.trigger_kind) == (None, "a\N{REPLACEMENT CHARACTER}b", "manual")
        assert run.completed_at == run.started_at


class TestOneShots:
    def test_one_that_is_to_come(self, newest: OriginalDatabase, workspace: Path) -> None:
        newest.job(workspace, schedule="", run_at=NOW_MS + 1500)
        assert taken(newest) == Summary(jobs=1)
        assert job().run_at == job().next_due == NOW + timedelta(milliseconds=1500)

    def test_a_single_time_stands_before_a_schedule(self, newest: OriginalDatabase, workspace: Path) -> None:
        newest.job(workspace, run_at=NOW_MS + 1500, active_from=NOW_MS)
        assert "the single time stands" in taken(newest).notes[0][1]
        assert (job().schedule, job().active_from, job().enabled) == ("", None, True)

    def test_one_that_was_missed(self, newest: OriginalDatabase, workspace: Path) -> None:
        newest.job(workspace, schedule="", run_at=NOW_MS - 60_000)
        newest.run(RUN_ID, status="skipped")
        assert "has passed" in taken(newest).notes[0][1]
        assert (job().enabled, job().last_run_status, job().next_due) == (False, "missed", None)

    def test_one_that_ran(self, newest: OriginalDatabase, workspace: Path) -> None:
        newest.job(
            workspace, schedule="", run_at=NOW_MS - 60_000, enabled=0, last_run_status="timeout",
            last_run_at=NOW_MS - 5000, last_run_id=RUN_ID,
        )  # fmt: skip
        newest.run(RUN_ID, status="timeout")
        assert taken(newest) == Summary(jobs=1, runs=1)
        assert (job().enabled, job().last_run_status, job().last_run_id) == (False, "timeout", RUN_ID)

    def test_one_that_was_cut_off(self, newest: OriginalDatabase, workspace: Path) -> None:
        newest.job(workspace, schedule="", run_at=NOW_MS - 60_000)
        newest.run(RUN_ID, status="running")
        assert taken(newest) == Summary(jobs=1, runs=1)
        assert (job().enabled, job().last_run_status, job().last_run_id) == (False, "failed", RUN_ID)
        assert job().last_run_at == CronRun.objects.get().started_at


FAULTS = [
    ({"schedule": "0 9 * *"}, "five fields"),
    ({"schedule": "61 9 * * *"}, "minute"),
    ({"schedule": "5 0 9 * * *"}, "five fields"),
    ({"schedule": "0 9 * * * \0"}, ""),
    ({"schedule": "1," * 300 + "1 * * * *"}, "200"),
    ({"schedule": ""}, "neither a schedule nor a single time"),
    ({"timezone": "Mars/Olympus"}, "Mars/Olympus"),
    ({"timezone": "x" * 300}, ""),
    ({"workspace_path": "/nowhere/at/all"}, "There is no folder /nowhere/at/all"),
    ({"workspace_path": "relative"}, "absolute path"),
    ({"workspace_path": "/"}, "root of the file system"),
    ({"working_dir": "gone"}, "folder not found: gone"),
    ({"working_dir": "../.."}, "inside the workspace"),
    ({"targets": "{"}, "cannot be read"),
    ({"targets": '{"channelType": "x"}'}, "cannot be read"),
    ({"targets": "[" * 100_000}, "cannot be read"),
    ({"targets": '[{"channelType": "telegram"}]'}, "accountId"),
    ({"run_at": 2**62}, "no time that there is"),
    ({"run_at": "soon"}, "no time that there is"),
    ({"active_from": -5}, "active_from is no time"),
    ({"active_from": NOW_MS + 2, "active_until": NOW_MS + 1}, "not after its beginning"),
    ({"agent_id": "../x"}, "names no agent"),
    ({"user_prompt": " "}, "no prompt"),
    ({"session_id": "a/b"}, "no valid id"),
]


class TestFaults:
    @pytest.mark.parametrize(("wrong", "words"), FAULTS)
    def test_the_job_is_taken_in_disabled_and_says_why(
        self, wrong: dict[str, Any], words: str, newest: OriginalDatabase, workspace: Path
    ) -> None:
        newest.job(**{"workspace": workspace, **wrong})
        newest.job(workspace, "cron-good")
        found = taken(newest)
        ((job_id, sentence),) = found.disabled
        assert (found.jobs, found.left_out, job_id) == (2, [], JOB_ID) and words in sentence
        assert (job().enabled, job().next_due, job().user_prompt.strip() in ("", "Report.")) == (False, None, True)
        assert job("cron-good").enabled and job("cron-good").next_due is not None

    @pytest.mark.parametrize("job_id", ["a/b", "..", "x y", "a>b", "x" * 300, "", b"\xff\x00"])
    def test_an_id_that_cannot_be_one_is_left_out(self, job_id: Any, newest: OriginalDatabase, workspace: Path) -> None:
        newest.job(workspace, job_id)
        newest.job(workspace, "cron-good")
        found = taken(newest)
        assert found.jobs == 1 and found.left_out[0][1].startswith("Its id cannot be one here")

    @pytest.mark.parametrize(
        ("given", "field", "kept", "words"),
        [
            ({"schedule": "0 30 9 * * 1-5"}, "schedule", "30 9 * * 1-5", None),
            ({"access_level": "readonly"}, "access_level", "readonly", None),
            ({"access_level": "observer"}, "access_level", "readonly", "not known here"),
            ({"access_level": 3}, "access_level", "readonly", "not known here"),
            ({"stateless": 1, "session_id": "abc"}, "session_id", None, "new session each time"),
            ({"schedule": "0 0 */2 * 1"}, "schedule", "0 0 */2 * 1", "both days must match here"),
            ({"last_run_status": "odd"}, "last_run_status", "failed", None),
            ({"run_at": 0}, "run_at", None, None),
        ],
    )
    def test_what_is_taken_in_otherwise(
        self, given: dict[str, Any], field: str, kept: Any, words: str | None, newest: OriginalDatabase, workspace: Path
    ) -> None:
        newest.job(workspace, **given)
        found = taken(newest)
        assert getattr(job(), field) == kept and job().enabled and found.disabled == []
        assert (words is None) == (found.notes == []) and (words or "") in str(found.notes)

    def test_refused_targets_are_kept_for_whoever_mends_them(self, newest: OriginalDatabase, workspace: Path) -> None:
        targets = [
            {"channelType": "telegram", "accountId": "1", "chatId": "5"},
            {"channelType": "webhook", "accountId": "http://evil/"},
        ]
        newest.job(workspace, targets=json.dumps(targets))
        summary = taken(newest)
        assert job().targets == targets and not job().enabled
        assert "is refused" in str(summary.disabled)

    def test_an_agent_that_is_not_there_is_told(self, newest: OriginalDatabase, workspace: Path) -> None:
        newest.job(workspace, agent_id="ghost")
        assert "ghost" in str(taken(newest).notes) and job().enabled

    def test_two_rows_of_one_id_are_one_job(self, newest: OriginalDatabase, workspace: Path) -> None:
        newest.without_primary_keys()
        for _ in range(2):
            newest.job(workspace)
            newest.run(RUN_ID)
        summary = taken(newest)
        assert (summary.jobs, summary.known_jobs, summary.runs, summary.known_runs) == (1, 1, 1, 1)

    @pytest.mark.parametrize("more", [{"user_prompt": "x" * 100_001}, {"label": "x" * 201}])
    def test_what_the_api_would_refuse_comes_in_disabled(
        self, newest: OriginalDatabase, workspace: Path, more: dict[str, str]
    ) -> None:
        newest.job(workspace, **more)
        assert len(taken(newest).disabled) == 1 and not job().enabled

    def test_a_disabled_job_stays_so(self, newest: OriginalDatabase, workspace: Path) -> None:
        newest.job(workspace, enabled=0)
        assert taken(newest) == Summary(jobs=1)
        assert not job().enabled and not PeriodicTask.objects.exists()

    def test_a_workspace_by_another_name_is_taken_by_its_real_path(
        self, newest: OriginalDatabase, workspace: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "link").symlink_to(workspace)
        newest.job(tmp_path / "link")
        taken(newest)
        assert job().workspace_path == str(workspace)


class TestUnreadable:
    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(NotFound, match=r"Name the original's cron\.db"):
            import_cron(tmp_path / "cron.db", NOW)

    @pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 4096])
    def test_no_database(self, content: bytes, tmp_path: Path) -> None:
        (tmp_path / "cron.db").write_bytes(content)
        with pytest.raises(LegacyUnreadable, match=r"cron\.db"):
            import_cron(tmp_path / "cron.db", NOW)
        assert not CronJob.objects.exists()


class TestCommand:
    def run(self, *arguments: str) -> tuple[int, list[str], list[str]]:
        out, err = io.StringIO(), io.StringIO()
        code = 0
        try:
            call_command("import-cron", *arguments, stdout=out, stderr=err, no_color=True)
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        return code, out.getvalue().split("\n")[:-1], err.getvalue().split("\n")[:-1]

    def test_what_it_prints(self, newest: OriginalDatabase, workspace: Path) -> None:
        newest.job(workspace)
        newest.job("/gone\x1b[2J", "cron-lost")
        newest.run(RUN_ID)
        assert self.run(str(newest.path.parent)) == (
            0,
            ["jobs: 2 taken in, 1 of them disabled; 0 were here", "runs: 1 taken in; 0 were here"],
            ["disabled cron-lost: There is no folder /gone\\x1b[2J."],
        )
        assert self.run(str(newest.path)) == (
            0, ["jobs: 0 taken in, 0 of them disabled; 2 were here", "runs: 0 taken in; 1 were here"], [],
        )  # fmt: skip

    def test_what_is_left_out_is_told_by_the_exit_code(self, newest: OriginalDatabase, workspace: Path) -> None:
        newest.job(workspace, "a b")
        code, out, err = self.run(str(newest.path))
        assert (code, out[-1]) == (1, "1 rows were left out") and err[0].startswith("left out a b: Its id")

    def test_a_path_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(HaloError, match="There is no file"):
            self.run(str(tmp_path))
