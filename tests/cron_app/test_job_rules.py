"""What a job may say: the rules on the merged row."""

import os
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cron_app.job_rules import check_complete, lay_over
from cron_app.models import CronJob
from halo_project.errors import BadRequest, HaloError
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.models import AgentSession, Workspace
from tests.agents_app.config.support import write_agent
from tests.cron_app.job_values import NOW, once, values
from tests.support.session_rows import make_session, make_workspace

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("home")]
HOUR = timedelta(hours=1)
PAST, LATER = NOW - HOUR, NOW + HOUR


@pytest.fixture
def daily(home: HomeLayout, workspace: Path) -> CronJob:
    return saved(values(workspace))


@pytest.fixture
def single(home: HomeLayout, workspace: Path) -> CronJob:
    return saved(once(workspace, LATER))


@pytest.fixture
def aide(home: HomeLayout, workspace: Path) -> str:
    """A second agent."""
    write_agent(WorkspaceLayout(workspace).agents / "aide")
    return "aide"


def saved(said: dict[str, Any]) -> CronJob:
    job = CronJob(pk="cron-a-1", created_at=NOW, updated_at=NOW)
    lay_over(job, said, NOW)
    job.save()
    return job


def refused(job: CronJob, now: datetime = NOW, **said: Any) -> HaloError:
    """Why the change is not made; nothing of it is in the database."""
    with pytest.raises(HaloError) as caught:
        lay_over(job, said, now)
    assert caught.value.message.strip()
    return caught.value


def elsewhere(tmp_path: Path) -> Path:
    """Another folder that can be a workspace."""
    root = (tmp_path / "elsewhere").resolve()
    root.mkdir()
    WorkspaceLayout(root).scaffold()
    return root


class TestNew:
    def test_what_is_not_said(self, daily: CronJob, workspace: Path) -> None:
        found = CronJob.objects.get()
        assert (found.label, found.run_at, found.timezone, found.active_from) == (None, None, "", None)
        assert (found.working_dir, found.stateless, found.session_id) == (None, False, None)
        assert (found.access_level, found.targets, found.enabled) == ("full", [], True)
        assert found.workspace_path == str(workspace)

    @pytest.mark.parametrize(
        ("column", "name"),
        [("workspace_path", "workspacePath"), ("agent_id", "agentId"), ("user_prompt", "userPrompt")],
    )
    def test_what_must_be_said(self, workspace: Path, column: str, name: str) -> None:
        said = values(workspace)
        for absent in ({**said, column: ""}, {key: said[key] for key in said if key != column}):
            with pytest.raises(BadRequest, match=f"{name} required"):
                check_complete(absent)

    def test_neither_schedule_nor_time(self, workspace: Path) -> None:
        job = CronJob(pk="cron-a-1")
        assert refused(job, **values(workspace, schedule=" ")).message == "schedule or runAt required"


class TestModes:
    def test_both_at_once(self, daily: CronJob, single: CronJob) -> None:
        for job in (daily, single):
            why = refused(job, schedule="0 9 * * *", run_at=LATER)
            assert (why.message, why.status) == ("schedule and runAt are mutually exclusive", 400)

    def test_one_switches(self, daily: CronJob) -> None:
        assert lay_over(daily, {"run_at": LATER}, NOW) == {"run_at", "schedule"}
        assert (daily.schedule, daily.run_at) == ("", LATER)
        assert lay_over(daily, {"schedule": " 5  4 * * 1"}, NOW) == {"run_at", "schedule"}
        assert (daily.schedule, daily.run_at) == ("5 4 * * 1", None)

    def test_clearing_the_other_is_no_change(self, daily: CronJob, single: CronJob) -> None:
        assert lay_over(daily, {"schedule": "0 9 * * *", "run_at": None}, NOW) == set()
        assert lay_over(single, {"schedule": "", "run_at": LATER}, NOW) == set()
        assert lay_over(single, {"schedule": ""}, NOW) == set()

    def test_clearing_the_active_one(self, daily: CronJob, single: CronJob) -> None:
        for job, said in (
            (daily, {"schedule": ""}),
            (daily, {"schedule": "  ", "run_at": None}),
            (single, {"run_at": None}),
        ):
            assert refused(job, **said).message == "schedule or runAt required"

    @pytest.mark.parametrize("run_at", [PAST, NOW])
    def test_a_time_that_has_passed(self, daily: CronJob, workspace: Path, run_at: datetime) -> None:
        assert refused(daily, run_at=run_at).message == "runAt must be in the future"
        new = CronJob(pk="cron-a-2")
        assert refused(new, **once(workspace, run_at, enabled=False)).message == "runAt must be in the future"

    def test_a_past_one_may_stay(self, single: CronJob) -> None:
        """It fired; the form sends all that it shows."""
        single.enabled = False
        after = LATER + HOUR
        changed = lay_over(single, {"label": "Done", "run_at": LATER, "schedule": "", "enabled": False}, after)
        assert changed == {"label"}

    def test_but_does_not_fire_again(self, single: CronJob) -> None:
        single.enabled = False
        single.save()
        for said in ({"enabled": True}, {"enabled": True, "run_at": LATER}):
            why = refused(CronJob.objects.get(), now=LATER + HOUR, **said)
            assert why.status == 400 and "has passed" in why.message
        single = CronJob.objects.get()
        lay_over(single, {"enabled": True, "run_at": LATER + 2 * HOUR}, LATER + HOUR)
        assert single.enabled


class TestWindow:
    def test_its_order(self, daily: CronJob) -> None:
        for until in (PAST, LATER):
            assert refused(daily, active_from=LATER, active_until=until).message.startswith("activeFrom must be before")

    def test_the_merged_row_counts(self, daily: CronJob) -> None:
        lay_over(daily, {"active_until": LATER}, NOW)
        assert refused(daily, active_from=LATER + HOUR).status == 400

    def test_not_with_a_single_time(self, daily: CronJob, single: CronJob) -> None:
        assert "recurring" in refused(single, active_from=LATER).message
        lay_over(daily, {"active_until": LATER + HOUR}, NOW)
        assert "recurring" in refused(daily, run_at=LATER).message

    def test_cleared_in_the_same_body(self, daily: CronJob) -> None:
        lay_over(daily, {"active_until": LATER + HOUR}, NOW)
        lay_over(daily, {"active_until": None, "run_at": LATER}, NOW)
        assert (daily.run_at, daily.active_until) == (LATER, None)

    def test_one_that_is_over_can_be_made_longer(self, daily: CronJob) -> None:
        lay_over(daily, {"active_until": LATER}, NOW)
        lay_over(daily, {"active_until": LATER + 5 * HOUR}, LATER + HOUR)
        assert daily.active_until == LATER + 5 * HOUR


class TestTexts:
    @pytest.mark.parametrize(
        ("said", "kept"), [("  Daily ", "Daily"), ("  ", None), (None, None), ("a\0b", "a\ufffdb")]
    )
    def test_label(self, daily: CronJob, said: str | None, kept: str | None) -> None:
        lay_over(daily, {"label": "before"}, NOW)
        lay_over(daily, {"label": said}, NOW)
        assert daily.label == kept

    def test_prompt(self, daily: CronJob) -> None:
        lay_over(daily, {"user_prompt": " one\0\ud83d\n two "}, NOW)
        daily.save()
        daily.refresh_from_db()
        assert daily.user_prompt == " one\ufffd\ufffd\n two "

    def test_sizes(self, daily: CronJob) -> None:
        lay_over(daily, {"label": "x" * 200, "user_prompt": "x" * 100_000}, NOW)
        assert refused(daily, label="x" * 201).code == "bad_label"
        assert refused(daily, user_prompt="x" * 100_001).code == "bad_prompt"
        assert refused(daily, user_prompt=" \n").message == "userPrompt required"
        assert refused(daily, schedule="1," * 200 + "1 * * * *").code == "bad_schedule"

    @pytest.mark.parametrize("schedule", ["nonsense", "* * * *", "0 0 30 2 *", "61 * * * *", "a\0b"])
    def test_schedules(self, daily: CronJob, schedule: str) -> None:
        assert refused(daily, schedule=schedule).code == "bad_schedule"

    def test_time_zones(self, daily: CronJob) -> None:
        lay_over(daily, {"timezone": " Asia/Kolkata "}, NOW)
        assert daily.timezone == "Asia/Kolkata"
        assert refused(daily, timezone="Mars/Base").code == "bad_timezone"
        lay_over(daily, {"timezone": " "}, NOW)
        assert daily.timezone == ""

    def test_access(self, daily: CronJob) -> None:
        lay_over(daily, {"access_level": "readonly"}, NOW)
        assert refused(daily, access_level="observer").code == "bad_access_level"
        lay_over(daily, {"access_level": None}, NOW)
        assert daily.access_level == "full"


class TestTargets:
    def test_each_once(self, daily: CronJob) -> None:
        first, second = {"channelType": "slack", "accountId": "a"}, {"channelType": "telegram", "accountId": "a"}
        said = [first, {**second, "chatId": "5"}, {**first, "chatId": None}, {**second, "chatId": "6"}, {**first}]
        lay_over(daily, {"targets": said}, NOW)
        assert daily.targets == [first, {**second, "chatId": "5"}, {**second, "chatId": "6"}]

    @pytest.mark.parametrize(
        "target",
        [
            "webhook",
            None,
            {},
            {"channelType": "telegram"},
            {"channelType": "", "accountId": "a"},
            {"channelType": "telegram", "accountId": 5},
            {"channelType": "telegram", "accountId": "a\0"},
            {"channelType": "telegram", "accountId": "\ud83d"},
            {"channelType": "telegram", "accountId": "x" * 2001},
            {"channelType": "telegram", "accountId": "a", "chatID": "5"},
            {"channelType": "telegram", "accountId": "a", "chatId": ["5"]},
        ],
    )
    def test_shapes(self, daily: CronJob, target: Any) -> None:
        assert refused(daily, targets=[target]).code == "bad_target"

    def test_how_many(self, daily: CronJob) -> None:
        many = [{"channelType": "telegram", "accountId": f"a{number}"} for number in range(21)]
        lay_over(daily, {"targets": many[:20]}, NOW)
        assert refused(daily, targets=many).code == "bad_target"

    def test_addresses_that_nobody_listed(self, daily: CronJob) -> None:
        """Each is asked of its kind of target; that of webhooks knows a list."""
        why = refused(daily, targets=[{"channelType": "webhook", "accountId": "https://example.com/hook"}])
        assert why.code == "webhook_not_listed"


class TestWorkspace:
    @pytest.mark.parametrize("link", ["link", "link/../link"])
    def test_the_real_path(self, daily: CronJob, workspace: Path, tmp_path: Path, link: str) -> None:
        (tmp_path / "link").symlink_to(workspace)
        assert lay_over(daily, {"workspace_path": str(tmp_path / link)}, NOW) == set()
        assert daily.workspace_path == str(workspace)

    def test_folders_that_cannot_be_one(self, daily: CronJob, home: HomeLayout, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
        odd.mkdir()
        (tmp_path / "odd").symlink_to(odd)
        for path, code in (
            ("relative", "workspace_not_absolute"),
            ("/a\0b", "workspace_not_absolute"),
            ("/\ud83d", "workspace_missing"),
            (str(tmp_path / "nowhere"), "workspace_missing"),
            (str(tmp_path / "file"), "workspace_not_directory"),
            ("/", "workspace_root"),
            (str(home.home), "workspace_is_home"),
            (str(home.internal_sessions), "workspace_internal"),
            (str(tmp_path / "odd"), "bad_path"),
        ):
            assert refused(daily, workspace_path=path).code == code

    def test_looking_makes_no_workspace_of_it(self, daily: CronJob, tmp_path: Path) -> None:
        plain = tmp_path / "plain"
        plain.mkdir()
        lay_over(daily, {"workspace_path": str(plain)}, NOW)
        assert list(plain.iterdir()) == [] and not Workspace.objects.exists()


class TestWorkingDir:
    @pytest.mark.parametrize("said", ["a/b", "./a//b/", "link", "{root}/a/b"])
    def test_kept_relative(self, daily: CronJob, workspace: Path, said: str) -> None:
        (workspace / "a" / "b").mkdir(parents=True)
        (workspace / "link").symlink_to("a/b")
        lay_over(daily, {"working_dir": said.format(root=workspace)}, NOW)
        assert daily.working_dir == "a/b"

    @pytest.mark.parametrize("said", [None, "", " ", ".", "./", "{root}", "self"])
    def test_the_root(self, daily: CronJob, workspace: Path, said: str | None) -> None:
        (workspace / "self").symlink_to(workspace)
        daily.working_dir = "a"
        lay_over(daily, {"working_dir": said and said.format(root=workspace)}, NOW)
        assert daily.working_dir is None

    @pytest.mark.parametrize(
        "said",
        [
            "..",
            "a/..",
            "a/../../x",
            "out",
            "out/deeper",
            "/etc",
            "nowhere",
            "file",
            "a\0b",
            "\ud83d",
            "x" * 300,
            "loop",
        ],
    )
    def test_T6_no_way_out(self, daily: CronJob, workspace: Path, tmp_path: Path, said: str) -> None:
        (tmp_path / "outside" / "deeper").mkdir(parents=True)
        (workspace / "a").mkdir()
        (workspace / "file").write_text("x")
        (workspace / "out").symlink_to(tmp_path / "outside")
        (workspace / "loop").symlink_to("loop")
        assert refused(daily, working_dir=said).status == 400

    def test_again_when_the_workspace_moves(self, daily: CronJob, workspace: Path, tmp_path: Path) -> None:
        other = elsewhere(tmp_path)
        (workspace / "a").mkdir()
        lay_over(daily, {"working_dir": "a"}, NOW)
        daily.save()
        assert refused(daily, workspace_path=str(other)).code == "folder_missing"
        (other / "a").mkdir()
        lay_over(daily, {"workspace_path": str(other)}, NOW)
        assert daily.working_dir == "a"

    def test_a_job_whose_folder_has_gone_can_be_switched_off(self, daily: CronJob, workspace: Path) -> None:
        (workspace / "a").mkdir()
        lay_over(daily, {"working_dir": "a"}, NOW)
        shutil.rmtree(workspace)
        assert lay_over(daily, {"enabled": False, "label": "Off"}, NOW) == {"enabled", "label"}
        assert refused(daily, enabled=True).code == "workspace_missing"


class TestAgent:
    def test_it_must_be_there(self, daily: CronJob, home: HomeLayout, workspace: Path) -> None:
        assert refused(daily, agent_id="nobody").code == "agent_missing"
        assert refused(daily, agent_id="../x").code == "bad_agent_id"
        write_agent(WorkspaceLayout(workspace).agents / "broken", model=5)
        assert refused(daily, agent_id="broken").code == "agent_invalid"
        write_agent(home.global_agents / "hidden", internal=True)
        assert refused(daily, agent_id="hidden").code == "agent_internal"

    def test_also_where_the_workspace_moves_to(self, daily: CronJob, aide: str, tmp_path: Path) -> None:
        lay_over(daily, {"agent_id": aide}, NOW)
        assert refused(daily, workspace_path=str(elsewhere(tmp_path))).code == "agent_missing"

    def test_one_that_went_does_not_stand_in_the_way_of_other_changes(
        self, daily: CronJob, aide: str, workspace: Path
    ) -> None:
        lay_over(daily, {"agent_id": aide}, NOW)
        shutil.rmtree(WorkspaceLayout(workspace).agents / aide)
        assert lay_over(daily, {"enabled": False}, NOW) == {"enabled"}
        assert refused(daily, enabled=True).code == "agent_missing"


class TestSession:
    @pytest.fixture
    def talk(self, home: HomeLayout, workspace: Path) -> AgentSession:
        return make_session(make_workspace(workspace), "talk")

    def test_picked(self, daily: CronJob, talk: AgentSession) -> None:
        lay_over(daily, {"session_id": "talk"}, NOW)
        assert daily.session_id == "talk"
        lay_over(daily, {"session_id": ""}, NOW)
        assert daily.session_id is None

    def test_never_with_a_new_one_each_time(self, daily: CronJob, talk: AgentSession) -> None:
        assert (
            refused(daily, session_id="talk", stateless=True).message
            == "stateless and sessionId are mutually exclusive"
        )
        daily.refresh_from_db()
        lay_over(daily, {"session_id": "talk"}, NOW)
        daily.save()
        assert refused(daily, stateless=True).status == 400
        daily.refresh_from_db()
        lay_over(daily, {"stateless": True, "session_id": None}, NOW)
        daily.save()
        assert refused(daily, session_id="talk").status == 400
        daily.refresh_from_db()
        lay_over(daily, {"stateless": False, "session_id": "talk"}, NOW)

    @pytest.mark.parametrize(
        ("change", "word"),
        [
            (lambda talk: talk.delete(), "no session"),
            (lambda talk: set_columns(talk, deleting=True), "no session"),
            (lambda talk: set_columns(talk, archived_at=NOW), "archived"),
            (lambda talk: set_columns(talk, agent_id="aide"), "'aide'"),
            (lambda talk: set_columns(talk, parent_session_id="above"), "sub-session"),
        ],
    )
    def test_one_that_cannot_be_picked(
        self, daily: CronJob, talk: AgentSession, change: Callable[[AgentSession], None], word: str
    ) -> None:
        change(talk)
        why = refused(daily, session_id="talk")
        assert why.status == 400 and word in why.message

    def test_only_a_root(self, daily: CronJob, talk: AgentSession) -> None:
        make_session(talk.workspace, "talk>sub")
        assert "sub-session" in refused(daily, session_id="talk>sub").message
        assert refused(daily, session_id="a/b").code == "bad_session_id"

    def test_not_of_another_workspace_and_not_an_internal_one(
        self, daily: CronJob, home: HomeLayout, workspace: Path, tmp_path: Path
    ) -> None:
        make_session(make_workspace(elsewhere(tmp_path)), "theirs")
        make_session(make_workspace(home.internal_sessions), "hidden", run_workspace=str(workspace))
        make_workspace(workspace)
        for session_id in ("theirs", "hidden"):
            assert "no session" in refused(daily, session_id=session_id).message

    def test_the_agent_changes(self, daily: CronJob, talk: AgentSession, aide: str) -> None:
        lay_over(daily, {"session_id": "talk"}, NOW)
        daily.save()
        why = refused(daily, agent_id=aide)
        assert "'default'" in why.message and why.status == 400
        daily.refresh_from_db()
        lay_over(daily, {"agent_id": aide, "session_id": None}, NOW)

    def test_the_workspace_moves(self, daily: CronJob, talk: AgentSession, tmp_path: Path) -> None:
        lay_over(daily, {"session_id": "talk"}, NOW)
        daily.save()
        assert "no session" in refused(daily, workspace_path=str(elsewhere(tmp_path))).message

    def test_one_that_went_does_not_stand_in_the_way_of_other_changes(self, daily: CronJob, talk: AgentSession) -> None:
        lay_over(daily, {"session_id": "talk"}, NOW)
        talk.delete()
        assert lay_over(daily, {"label": "x"}, NOW) == {"label"}

    def test_its_own_belongs_to_another_agent(self, daily: CronJob, workspace: Path, aide: str, tmp_path: Path) -> None:
        own = make_session(make_workspace(workspace), daily.pk)
        why = refused(daily, agent_id=aide)
        assert daily.pk in why.message and "'default'" in why.message and why.status == 400
        daily.refresh_from_db()
        lay_over(daily, {"agent_id": aide, "stateless": True}, NOW)
        daily.save()
        assert refused(daily, stateless=False).code == "bad_job_session"
        daily.refresh_from_db()
        other = make_workspace(elsewhere(tmp_path))
        make_session(other, daily.pk, agent_id="somebody")
        assert "'somebody'" in refused(daily, workspace_path=other.path, agent_id="default", stateless=False).message
        daily.refresh_from_db()
        own.delete()
        lay_over(daily, {"stateless": False}, NOW)

    def test_its_own_by_name_need_not_be_there_yet(self, daily: CronJob) -> None:
        for name in (daily.pk, f"cron-{daily.pk}"):
            lay_over(daily, {"session_id": name}, NOW)
            assert daily.session_id == name


class TestSwitchingOn:
    def test_everything_is_looked_at(self, daily: CronJob) -> None:
        """A job may have been taken over from elsewhere with a fault, switched off."""
        for fault, code in (
            ({"schedule": "61 * * * *"}, "bad_schedule"),
            ({"timezone": "Mars/Base"}, "bad_timezone"),
            ({"agent_id": ""}, "bad_agent_id"),
            ({"user_prompt": ""}, "bad_prompt"),
            ({"targets": [{"channelType": "webhook"}]}, "bad_target"),
            ({"session_id": "nowhere"}, "bad_job_session"),
        ):
            CronJob.objects.update(enabled=False, **fault)
            assert refused(CronJob.objects.get(), enabled=True).code == code
            lay_over(CronJob.objects.get(), {"label": "still editable"}, NOW)
            daily.enabled = True
            daily.save()

    def test_with_what_mends_it(self, daily: CronJob) -> None:
        daily.enabled, daily.schedule = False, "61 * * * *"
        lay_over(daily, {"enabled": True, "schedule": "1 * * * *"}, NOW)
        assert daily.enabled


def set_columns(session: AgentSession, **columns: Any) -> None:
    for name, value in columns.items():
        setattr(session, name, value)
    session.save()
