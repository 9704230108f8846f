"""`cron_jobs` on real sessions: what an agent does with schedules, who holds the tool, and what it may not."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agents_app import conversation
from agents_app.access import level_now
from agents_app.config.files import BUNDLED
from agents_app.in_force import Circumstances, in_force
from channels_app.delivery_kinds import Kind, _kinds, register_kind
from cron_app import jobs
from cron_app.models import CronJob
from cron_app.tool import CronJobs
from cron_app.tool_actions import _CHANGES, act, answer_of
from cron_app.tool_actions import Call as Action
from halo_project.database import db
from halo_project.errors import HaloError
from sessions_app.models import AgentSession
from sessions_app.workspaces import open_workspace
from tests.agents_app.config.support import write_agent, write_skill
from tests.support.crew import Crash, Crew, start
from tests.support.model_server import Call, ModelReply
from tests.support.session_rows import make_session

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)  # a Friday
DAILY = {"action": "create", "prompt": "Report.", "schedule": "0 9 * * *", "timezone": "Asia/Kolkata"}
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "agents.md"

Do = Callable[..., dict[str, Any]]


class TestInATurn:
    """Through the model, the engine and the queue."""

    async def test_a_job_is_made_listed_and_told(self, crew: Crew) -> None:
        crew.add_agent("lead", "tools: [shell_exec]\nskills: [cron]")
        crew.on("lead", "go", ModelReply(calls=[Call("cron_jobs", DAILY)]))
        crew.on("lead", '"code": 0', ModelReply(calls=[Call("cron_jobs", {"action": "list"})]))
        crew.on("lead", '"total": 1', "done")
        root = await crew.send("go")
        await crew.settle()
        made, listed = map(json.loads, crew.results(root))
        job = await db(CronJob.objects.get)
        assert (job.workspace_path, job.agent_id, job.access_level) == (str(crew.workspace), "lead", "full")
        assert (job.user_prompt, job.schedule, job.timezone) == ("Report.", "0 9 * * *", "Asia/Kolkata")
        assert listed["jobs"] == [made["job"]] and made["job"]["job_id"] == job.pk
        local, in_utc = (datetime.fromisoformat(made["job"]["next_run"][name]) for name in ("local", "utc"))
        assert local == in_utc == job.next_due and (local.hour, in_utc.hour, in_utc.minute) == (9, 3, 30)
        assert local.isoformat().endswith("+05:30") and in_utc.isoformat().endswith("+00:00")
        await crew.nothing_is_left()

    async def test_what_is_misspelt_is_refused_in_words_of_the_tool(self, crew: Crew) -> None:
        crew.add_agent("lead", "skills: [cron]")
        create = {"action": "create", "prompt": "hi"}
        crew.on("lead", "go", ModelReply(calls=[Call("cron_jobs", {**DAILY, "time_zone": "Europe/Paris"})]))
        crew.on("lead", "has no argument", ModelReply(calls=[Call("cron_jobs", create)]))
        crew.on("lead", "schedule or run_at required", ModelReply(calls=[Call("cron_jobs", DAILY | {"prompt": " "})]))
        crew.on("lead", "prompt required", "I give up.")
        root = await crew.send("go")
        await crew.settle()
        assert "Did you mean `timezone`?" in crew.results(root)[0] and crew.answers(root)[-1] == "I give up."
        assert not await db(CronJob.objects.exists)

    async def test_the_command_teaches_the_tool(self, crew: Crew) -> None:
        crew.add_agent("lead", "skills: [cron]")
        crew.on("lead", "Asked for: list", ModelReply(calls=[Call("cron_jobs", {"action": "list"})]))
        crew.on("lead", '"total": 0', "There are none.")
        root = await crew.send("/cron list")
        await crew.settle()
        assert crew.said(root) == ["/cron list"] and crew.answers(root)[-1] == "There are none."
        await crew.nothing_is_left()

    async def test_a_call_that_a_crash_took_the_answer_of_made_one_job_and_is_told_so(
        self, crew: Crew, monkeypatch
    ) -> None:
        crew.add_agent("lead", "skills: [cron]")
        crew.on("lead", "go", ModelReply(calls=[Call("cron_jobs", DAILY)]))
        crew.on("lead", "[System]", "went on")
        answer = CronJobs.answer

        async def dies(*given: Any) -> dict[str, Any]:
            await answer(*given)
            raise Crash

        with monkeypatch.context() as patch:
            patch.setattr(CronJobs, "answer", dies)
            root = await crew.send("go")
            await crew.until(lambda: db(CronJob.objects.exists))
            await crew.crash()
        await crew.recovered()
        (told,) = crew.results(root)
        job = await db(CronJob.objects.get)
        assert json.loads(told)["job"]["job_id"] == job.pk and job.origin.startswith("call:")

    async def test_a_sub_agent_gives_its_job_to_the_agent_that_answers_by_default(self, crew: Crew) -> None:
        crew.add_agent("lead", "team: [helper]\npriority: 200")
        crew.add_agent("helper", "skills: [cron]")
        crew.on("lead", "go", ModelReply(calls=[start("plan it")]))
        crew.on("helper", "plan it", ModelReply(calls=[Call("cron_jobs", DAILY)]))
        crew.on("helper", '"code": 0', "planned")
        crew.on("lead", "", "done", always=True)
        await crew.send("go")
        await crew.settle()
        assert (await db(CronJob.objects.get)).agent_id == "lead"

    async def test_a_level_that_was_lowered_meanwhile_counts(self, crew: Crew) -> None:
        crew.add_agent("lead", "skills: [cron]")

        def lowered(_: dict[str, Any]) -> ModelReply:
            return ModelReply(calls=[Call("cron_jobs", DAILY)])

        async def send(text: str, level: str) -> AgentSession:
            await conversation.send(
                workspace=str(crew.workspace), session_id="root", text=text, agent_id="lead", access_level=level
            )
            await crew.settle()
            return await crew.session()

        crew.on("lead", "go", lowered)
        crew.on("lead", '"code": 0', "done")
        crew.on("lead", "more", lowered)
        crew.on("lead", "tool", "refused")
        root = await send("go", "workspace")
        assert (await db(CronJob.objects.get)).access_level == "workspace"
        await send("more", "readonly")
        assert "cron_jobs" not in [tool["name"] for tool in crew.server.requests[-1].body.get("tools", [])]
        assert await db(CronJob.objects.count) == 1
        assert await db(level_now, root) == "readonly"


class TestHeld:
    @pytest.fixture
    def held(self, home, workspace: Path) -> Callable[..., bool]:
        write_agent(home.global_agents / "aide", name="Aide", skills=["cron"])
        write_agent(home.global_agents / "plain", name="Plain", skills=[])
        write_agent(home.global_agents / "inner", name="Inner", skills=["cron"], internal=True)

        def held(agent: str = "aide", **more: Any) -> bool:
            return CronJobs in in_force(Circumstances(agent, workspace, **more)).session_tools

        return held

    def test_where_the_skill_is_in_effect(self, held: Callable[..., bool]) -> None:
        assert held() and held(root=False) and not held("plain") and not held("inner")
        assert not held(disabled_skills=frozenset({("cron", "global")}))

    def test_from_the_level_workspace_on(self, held: Callable[..., bool]) -> None:
        assert held(access="workspace") and not held(access="readonly") and not held(access="observer")

    def test_also_with_a_skill_of_the_workspace_in_its_place(self, held: Callable[..., bool], workspace: Path) -> None:
        write_skill(workspace / ".halo" / "skills" / "cron", "Our own rules.")
        assert held()


@pytest.fixture
def session(home, workspace: Path) -> AgentSession:
    for name in ("aide", "other"):
        write_agent(home.global_agents / name, name=name.title(), skills=["cron"])
    return make_session(open_workspace(str(workspace), NOW), "root", agent_id="aide")


@pytest.fixture
def do(session: AgentSession, workspace: Path) -> Do:
    """Calls the action at NOW; every call has a name of its own unless one is given."""
    count = iter(range(1_000))

    def do(action: str, call: str = "", now: datetime = NOW, room: int = 8_000, **args: Any) -> dict[str, Any]:
        given = {"action": action, **args}
        return act(Action(session, workspace, given, call or f"call:r:{next(count)}", room), now)

    return do


def refusal(do: Do, *given: Any, **args: Any) -> str:
    with pytest.raises(HaloError) as caught:
        do(*given, **args)
    assert caught.value.status < 500
    return caught.value.message


def made(do: Do, **args: Any) -> dict[str, Any]:
    return do("create", **{"prompt": "Report.", "schedule": "0 9 * * *", "timezone": "UTC", **args})["job"]


class TestCreate:
    def test_everything_that_can_be_said(self, do: Do, workspace: Path) -> None:
        (workspace / "src").mkdir()
        job = made(
            do, label="Morning", agent_id="other", working_dir="src", new_session_each_run=True,
            timezone="Europe/Paris", active_from="2027-02-01T00:00", active_until="2027-03-01", enabled=False,
            targets=[{"channelType": "telegram", "accountId": "1", "chatId": "42"}],
        )  # fmt: skip
        row = CronJob.objects.get()
        assert (row.label, row.agent_id, row.working_dir, row.stateless) == ("Morning", "other", "src", True)
        assert (row.active_from, row.active_until) == (
            datetime(2027, 1, 31, 23, tzinfo=UTC), datetime(2027, 2, 28, 23, tzinfo=UTC),
        )  # fmt: skip
        assert row.targets == [{"channelType": "telegram", "accountId": "1", "chatId": "42"}]
        assert (job["enabled"], job["next_run"], job["active_from"]) == (False, None, "2027-02-01T00:00+01:00")

    @pytest.mark.parametrize(
        ("text", "zone", "instant"),
        [
            ("2027-01-15T18:30", "Asia/Kolkata", datetime(2027, 1, 15, 13, tzinfo=UTC)),
            ("2027-01-15T18:30+02:00", "Asia/Kolkata", datetime(2027, 1, 15, 16, 30, tzinfo=UTC)),
            ("2027-01-15T18:30:05Z", "Asia/Kolkata", datetime(2027, 1, 15, 18, 30, 5, tzinfo=UTC)),
            ("2027-07-01T09:00", "Europe/Paris", datetime(2027, 7, 1, 7, tzinfo=UTC)),
            ("2027-07-01T09:00", "", datetime(2027, 7, 1, 13, tzinfo=UTC)),  # the machine's: New York
        ],
    )
    def test_once(self, text: str, zone: str, instant: datetime, do: Do, settings) -> None:
        settings.HALO_ZONE = "America/New_York"
        job = do("create", prompt="Report.", run_at=text, timezone=zone)["job"]
        assert CronJob.objects.get().run_at == CronJob.objects.get().next_due == instant
        assert datetime.fromisoformat(job["run_at"]) == instant and "schedule" not in job
        assert job["timezone"] == (zone or "America/New_York")

    def test_the_same_call_again_makes_no_second_job(self, do: Do) -> None:
        first = do("create", "call:r:x", prompt="Report.", schedule="0 9 * * *")
        again = do("create", "call:r:x", prompt="Report.", schedule="0 9 * * *", now=NOW + timedelta(seconds=9))
        other = do("create", "call:r:y", prompt="Report.", schedule="0 9 * * *")
        assert first == again != other and CronJob.objects.count() == 2
        assert json.loads(answer_of("call:r:x") or "") == first and answer_of("call:r:z") is None

    @pytest.mark.parametrize("level", ["workspace", "full"])
    def test_it_has_the_level_of_the_session(self, level: str, do: Do, session: AgentSession) -> None:
        AgentSession.objects.update(access_level=level)
        assert made(do)["access_level"] == CronJob.objects.get().access_level == level

    @pytest.mark.parametrize("level", ["readonly", "observer", "", "root"])
    def test_lower_levels_are_refused(self, level: str, do: Do, session: AgentSession) -> None:
        AgentSession.objects.update(access_level=level)
        for action in ("list", "create", "update", "enable", "disable", "delete"):
            assert "need the access level 'workspace'" in refusal(do, action, job_id="cron-x", prompt="x")
        assert not CronJob.objects.exists()

    @pytest.mark.parametrize(
        ("args", "words"),
        [
            ({"prompt": ""}, "userPrompt required"),
            ({"schedule": ""}, "schedule or runAt required"),
            ({"schedule": "0 9"}, "five fields"),
            ({"run_at": "2027-02-01T09:00"}, "mutually exclusive"),
            ({"schedule": "", "run_at": "2026-02-01T09:00"}, "future"),
            ({"schedule": "", "run_at": "in two hours"}, "`run_at` is a date and time as ISO 8601"),
            ({"schedule": "", "run_at": "0001-01-01T00:00+14:00"}, "`run_at` is a date and time as ISO 8601"),
            ({"timezone": "Mars/Olympus"}, "Mars/Olympus"),
            ({"agent_id": "nobody"}, "nobody"),
            ({"agent_id": "../x"}, "agent id"),
            ({"working_dir": "../.."}, "inside the workspace"),
            ({"working_dir": "/etc"}, "outside the workspace"),
            ({"targets": ["telegram"]}, "target"),
            ({"active_from": "2027-03-01", "active_until": "2027-02-01"}, "before"),
        ],
    )
    def test_what_does_not_hold_is_refused(self, args: dict[str, Any], words: str, do: Do) -> None:
        given = {"prompt": "Report.", "schedule": "0 9 * * *", **args}
        assert words in refusal(do, "create", **given)
        assert not CronJob.objects.exists()

    def test_an_action_that_there_is_not(self, do: Do) -> None:
        assert refusal(do, "run") == "`action` is one of list, create, update, enable, disable, delete"


class TestChange:
    def test_update_changes_what_is_given(self, do: Do) -> None:
        job = made(do, label="Morning", active_until="2027-03-01")
        changed = do("update", job_id=job["job_id"], schedule="30 7 * * *", timezone="Europe/Paris")["job"]
        assert (changed["label"], changed["prompt"], changed["schedule"]) == ("Morning", "Report.", "30 7 * * *")
        assert changed["next_run"] == {"local": "2027-01-16T07:30+01:00", "utc": "2027-01-16T06:30+00:00"}

    def test_a_time_without_offset_is_of_the_jobs_zone(self, do: Do) -> None:
        job = made(do, timezone="Asia/Kolkata")
        paused = do("update", job_id=job["job_id"], active_from="2027-01-20T00:00")["job"]
        assert paused["next_run"]["local"] == "2027-01-20T09:00+05:30"

    def test_an_empty_text_clears(self, do: Do, settings) -> None:
        settings.HALO_ZONE = "America/New_York"
        job = made(do, label="Morning", active_from="2027-02-01", timezone="Asia/Kolkata")
        job = do("update", job_id=job["job_id"], label="", active_from="", timezone="", targets=[])["job"]
        assert (job["label"], job["timezone"], job["targets"]) == (None, "America/New_York", [])
        assert "active_from" not in job and job["next_run"]["local"] == "2027-01-15T09:00-05:00"

    def test_a_new_session_each_run_takes_the_place_of_a_picked_one(self, do: Do, session: AgentSession) -> None:
        job = made(do)
        jobs.update(job["job_id"], {"session_id": session.session_id}, NOW)
        assert do("update", job_id=job["job_id"], new_session_each_run=True)["job"]["new_session_each_run"]
        assert CronJob.objects.get().session_id is None

    def test_nothing_to_change(self, do: Do) -> None:
        job = made(do)
        assert "nothing is to be changed" in refusal(do, "update", job_id=job["job_id"])
        assert "`job_id` says which" in refusal(do, "update", label="x")
        assert "`job_id` says which" in refusal(do, "delete")

    def test_disable_enable_delete(self, do: Do) -> None:
        job_id = made(do)["job_id"]
        assert do("disable", job_id=job_id)["job"]["next_run"] is None
        assert do("enable", job_id=job_id)["job"]["next_run"]["utc"] == "2027-01-15T09:00+00:00"
        assert do("delete", job_id=job_id)["code"] == 0 and not CronJob.objects.exists()
        assert "there is no job" in refusal(do, "delete", job_id=job_id)

    def test_a_single_time_that_has_passed_is_not_enabled(self, do: Do) -> None:
        job_id = do("create", prompt="x", run_at="2027-01-15T09:00", timezone="UTC", enabled=False)["job"]["job_id"]
        later = NOW + timedelta(days=1)
        assert "has passed" in refusal(do, "enable", job_id=job_id, now=later)
        again = do("update", job_id=job_id, run_at="2027-01-17T09:00", enabled=True, now=later)["job"]
        assert again["next_run"]["utc"] == "2027-01-17T09:00+00:00"


class TestReach:
    @pytest.fixture
    def elsewhere(self, do: Do, tmp_path: Path) -> CronJob:
        """A job of another workspace."""
        folder = tmp_path / "elsewhere"
        folder.mkdir()
        return jobs.create(
            {"workspace_path": str(folder), "agent_id": "aide", "user_prompt": "Theirs.", "schedule": "0 9 * * *"}, NOW
        )

    def test_jobs_of_other_workspaces_do_not_exist(self, elsewhere: CronJob, do: Do) -> None:
        mine = made(do)
        assert [job["job_id"] for job in do("list")["jobs"]] == [mine["job_id"]]
        for action in ("list", "update", "enable", "disable", "delete"):
            assert f'there is no job "{elsewhere.pk}"' in refusal(do, action, job_id=elsewhere.pk, label="x")
        found = CronJob.objects.get(pk=elsewhere.pk)
        assert found.label is None and found.enabled

    @pytest.mark.parametrize("job_id", ["x\0", "\ud800", "x" * 5_000, "' OR 1=1"])
    def test_odd_ids(self, job_id: str, do: Do) -> None:
        assert "there is no job" in refusal(do, "delete", job_id=job_id)

    def test_one_with_a_higher_level_is_listed_without_its_prompt_and_not_changed(
        self, do: Do, session: AgentSession
    ) -> None:
        job_id = made(do, prompt="The secret plan.")["job_id"]
        AgentSession.objects.update(access_level="workspace")
        for listed in (do("list")["jobs"][0], do("list", job_id=job_id)["job"]):
            assert listed["job_id"] == job_id and "not shown" in listed["prompt"]
        for action in ("update", "enable", "disable", "delete"):
            assert "has the access level 'full', and this session only 'workspace'" in refusal(
                do, action, job_id=job_id, prompt="Mine."
            )
        assert CronJob.objects.get().user_prompt == "The secret plan."

    def test_a_change_from_above_leaves_the_level_as_it_is(self, do: Do, session: AgentSession) -> None:
        AgentSession.objects.update(access_level="workspace")
        job_id = made(do)["job_id"]
        AgentSession.objects.update(access_level="full")
        assert do("update", job_id=job_id, prompt="More.")["job"]["access_level"] == "workspace"

    def test_the_level_of_a_session_above_counts(self, do: Do, session: AgentSession, workspace: Path) -> None:
        child = make_session(session.workspace, "root>sid_1", agent_id="aide")
        AgentSession.objects.filter(pk=session.pk).update(access_level="readonly")
        with pytest.raises(HaloError, match="this session has 'readonly'"):
            act(Action(child, workspace, dict(DAILY), "call:r:9", 8_000), NOW)


class TestList:
    def test_in_parts_with_the_newest_first(self, do: Do) -> None:
        ids = [made(do, now=NOW + timedelta(seconds=number), label=f"n{number}")["job_id"] for number in range(40)]
        seen: list[str] = []
        assert do("list", offset=10**30)["jobs"] == []
        offset: int | None = 0
        while offset is not None:
            answer = do("list", offset=offset)
            assert len(json.dumps(answer, ensure_ascii=False)) <= 8_100 and answer["total"] == 40
            seen += [job["job_id"] for job in answer["jobs"]]
            offset = answer.get("next_offset")
        assert seen == ids[::-1]

    def test_long_prompts_are_shortened_and_one_is_shown_whole(self, do: Do) -> None:
        job_id = made(do, prompt="word " * 500)["job_id"]
        assert len(do("list", room=100)["jobs"][0]["prompt"]) == 201
        assert do("list", job_id=job_id)["job"]["prompt"] == "word " * 500

    def test_what_was_last(self, do: Do) -> None:
        made(do)
        CronJob.objects.update(last_run_status="failed", last_run_at=NOW, timezone="Not/AZone")
        assert do("list")["jobs"][0]["last_run"] == {"status": "failed", "at": "2027-01-15T08:00+00:00"}

    def test_the_targets_there_are(self, do: Do, workspace: Path) -> None:
        class Pigeon(Kind):
            channel_type = "pigeon"

            def targets(self) -> list[dict[str, Any]]:
                rest = {"hasActiveChat": True, "label": "Coop"}
                return [
                    {"accountId": "all", "enabled": True, "workspacePath": "", **rest},
                    {"accountId": "here", "enabled": True, "workspacePath": str(workspace), **rest},
                    {"accountId": "else", "enabled": True, "workspacePath": "/elsewhere", **rest},
                    {"accountId": "off", "enabled": False, "workspacePath": "", **rest},
                ]

        register_kind(Pigeon())
        try:
            found = [each for each in do("list")["targets"] if each["channelType"] == "pigeon"]
        finally:
            del _kinds["pigeon"]
        assert [each["accountId"] for each in found] == ["all", "here"]


def test_the_skill_teaches_every_action_and_argument() -> None:
    text = (BUNDLED / "skills" / "cron" / "SKILL.md").read_text()
    verbs = re.findall(r"- \{ name: (\w+),", text)
    assert sorted(verbs) == sorted(("list", *_CHANGES))
    assert {name for name in CronJobs.input_schema["properties"] if f"`{name}`" not in text} == set()


def test_the_document_names_every_argument() -> None:
    (section,) = [part for part in DOCUMENT.read_text().split("\n## ") if part.startswith("Schedules")]
    assert {name for name in CronJobs.input_schema["properties"] if f"`{name}`" not in section} == set()
