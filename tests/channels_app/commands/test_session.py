"""`/session …` over real rows: whose sessions are seen, and what is told of them."""

import re
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async

from sessions_app.models import AgentSession
from tests.support.session_rows import T0, hold, make_session, make_workspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def row(workspace):
    return make_workspace(workspace)


async def many(row, *session_ids: str, **columns) -> None:
    for minute, session_id in enumerate(session_ids):
        await sync_to_async(make_session)(row, session_id, minute, **columns)


async def test_new_gives_a_session_to_come_with_the_agent_of_the_one_that_is_open(ask, row):
    await many(row, "s1", agent_id="writer")
    answer = await ask("/session new", session_id="s1")
    assert re.fullmatch("[a-z0-9]{16}", answer.switch_to) and answer.agent_id == "writer" and answer.workspace is None
    assert await AgentSession.objects.acount() == 1  # it is made with its first message


async def test_a_new_session_of_a_door_begins_with_that_persons_prefix(ask):
    answer = await ask("/session new", session_prefix="tg_7_", access="readonly", agent_id="default")
    assert re.fullmatch("tg_7_[a-z0-9]+", answer.switch_to) and answer.agent_id == "default"


async def test_the_list_is_numbered_newest_first_and_marks_what_is_open_and_what_runs(ask, row):
    await many(row, "s1", "s2", "s3")
    await many(row, "s1>sub")
    await sync_to_async(lambda: hold(AgentSession.objects.get(session_id="s2")))()
    lines = (await ask("/session list", session_id="s1")).text.split("\n")
    assert [line.split(" · ")[2] for line in lines] == ["idle", "at work", "idle (current)"]
    assert "Title of s3" in lines[0] and "Title of s1" in lines[2] and lines[2].endswith("(current)")


async def test_an_empty_list_says_so_in_the_callers_language(ask):
    assert (await ask("/session list")).text == "There are no sessions yet."
    assert (await ask("/session list", language="zh")).text == "还没有会话。"


async def test_a_long_list_shows_the_newest_and_says_that_there_are_more(ask, row):
    await many(row, *(f"s{number}" for number in range(23)))
    lines = (await ask("/session list")).text.split("\n")
    assert len(lines) == 21 and "Title of s22" in lines[0] and lines[-1] == "… and older ones"
    assert (await ask("/session switch 23")).switch_to == "s0"


async def test_a_title_cannot_break_the_list(ask, row):
    await many(row, "s1", title="one\ntwo\n3. three " + "x" * 500)
    (line,) = (await ask("/session list")).text.split("\n")
    assert "one two 3. three" in line and len(line) < 150


@pytest.mark.parametrize(
    ("text", "session_id"),
    [
        ("2", "s1"), ("1", "s2"), ("s1", "s1"), ("3", None), ("0", None), ("-1", None), ("s9", None), ("９", None),
        ("99999999999999999999", None), ("../x", None),
    ],
)  # fmt: skip
async def test_switch_takes_a_number_of_the_list_or_an_id(ask, row, text, session_id):
    await many(row, "s1", "s2")
    answer = await ask(f"/session switch {text}")
    assert answer.switch_to == session_id
    assert ("Title of" in answer.text) is (session_id is not None)
    assert ("There is no session" in answer.text) is (session_id is None)


async def test_switch_takes_the_end_of_an_id_where_only_one_has_it(ask, row):
    await many(row, "kepiw0kb38dg71oa", "s_one_end", "s_two_end", "s_three_END", "s_four_gone", deleting=False)
    await AgentSession.objects.filter(session_id="s_four_gone").aupdate(deleting=True)
    assert (await ask("/session switch w0kb38dg71oa")).switch_to == "kepiw0kb38dg71oa"
    answer = await ask("/session switch _end")
    assert answer.switch_to is None and "More than one session ends in _end" in answer.text
    for ending in ("oa", "gone", "W0KB38DG71OA", "%_end", "_en"):
        answer = await ask(f"/session switch {ending}")
        assert answer.switch_to is None and "There is no session" in answer.text, ending


async def test_below_full_access_an_ending_leads_to_ones_own_sessions_alone(ask, row):
    await many(row, "web_a_longid", "web_b_longid", "web_b_other")
    told = {"access": "readonly", "session_prefix": "web_a_"}
    assert (await ask("/session switch longid", **told)).switch_to == "web_a_longid"
    assert (await ask("/session switch _other", **told)).switch_to is None


async def test_switch_without_a_number_asks_for_one(ask):
    assert "`/session switch <n>`" in (await ask("/session switch")).text


@pytest.mark.parametrize("verb", ["list", "switch 1", "switch 2", "switch other_1", "switch WEB_a_1"])
async def test_below_full_access_nobody_sees_another_persons_sessions(ask, row, verb):
    await many(row, "web_a_1", "other_1", "WEB_a_2", "web_b_1", "web_a_0>sub")
    answer = await ask(f"/session {verb}", access="readonly", session_prefix="web_a_")
    for session_id in ("other_1", "WEB_a_2", "web_b_1", "web_a_0>sub"):
        assert f"Title of {session_id}" not in answer.text
    assert answer.switch_to in (None, "web_a_1")
    if verb == "list":
        assert answer.text.count("\n") == 0 and "web_a_1" in answer.text


async def test_at_full_access_every_session_is_seen_whatever_the_prefix(ask, row):
    await many(row, "other_1")
    assert (await ask("/session switch 1", session_prefix="web_a_")).switch_to == "other_1"


async def test_below_full_access_without_a_prefix_only_the_open_session_is_ones_own(ask, row):
    await many(row, "s1", "s12", "s2")
    listed = (await ask("/session list", access="workspace", session_id="s1")).text
    assert "Title of s1 " in listed and "s12" not in listed and "s2" not in listed
    assert (await ask("/session list", access="workspace")).text == "There are no sessions yet."


@pytest.mark.parametrize("verb", ["info", "context", "stop", "interrupt", "compact"])
async def test_another_persons_session_cannot_be_looked_at_or_stopped(ask, row, verb):
    await many(row, "web_b_1")
    answer = await ask(f"/session {verb}", access="workspace", session_prefix="web_a_", session_id="web_b_1")
    assert answer.text == "There is no session yet. Write something first."


async def test_info_prints_the_whole_tree_from_wherever_one_is_in_it(ask, row):
    await many(row, "root_of_all_sessions", title="The plan")
    await many(row, "root_of_all_sessions>a", agent_name="Scout", title="Look around")
    await many(row, "root_of_all_sessions>b", agent_name="Writer", stopped_at=T0)
    await many(row, "root_of_all_sessions>a>c", agent_name="Digger", archived_at=T0, created_at=T0 - timedelta(hours=2))
    await many(row, "root_of_all_sessionsX", "other")
    await sync_to_async(lambda: hold(AgentSession.objects.get(session_id="root_of_all_sessions>a")))()
    answer = (await ask("/session info", session_id="root_of_all_sessions>a")).text
    head, blank, *lines = answer.split("\n")
    assert head == "**The plan** · `root_of_all_sessions`" and blank == ""
    assert [line[: line.index("·")].rstrip() for line in lines] == [
        "- Default",
        "  - Scout: Look around (current)",
        "    - Digger: Title of root_of_all_sessions>a>c",
        "  - Writer: Title of root_of_all_sessions>b",
    ]
    assert "· archived · began 2026-03-01 10:00 UTC · last active 2026-03-01 12:00 UTC" in lines[2]
    assert "· at work ·" in lines[1] and "· stopped ·" in lines[3]
    chinese = (await ask("/session info", session_id="root_of_all_sessions", language="zh")).text
    assert "开始于 2026-03-01 12:00 UTC · 最近活动 2026-03-01 12:00 UTC" in chinese


async def test_info_of_a_huge_tree_is_cut_and_says_by_how_much(ask, row):
    await many(row, "r", *(f"r>s{number}" for number in range(70)))
    lines = (await ask("/session info", session_id="r")).text.split("\n")
    assert len(lines) == 2 + 60 + 1 and lines[-1] == "- … and 11 more"


async def test_context_tells_who_answers_how_full_it_is_and_what_the_prompt_is_made_of(
    ask, row, workspace, write_agent
):
    (write_agent("lead", "Leader") / "AGENT.md").write_text("You lead.")
    (workspace / ".halo" / "INDEX.md").write_text("Map")
    (workspace / ".halo" / "USER.md").write_text("Me, myself")
    await many(row, "s1", agent_id="lead", context_tokens=50_000, total_output_tokens=1234, working_dir="/somewhere")
    text = (await ask("/session context", session_id="s1")).text
    for part in ("Leader (`lead`)", "50,000 of 200,000 tokens (25 %)", "1,234", "`/somewhere`", "Rehearsal"):
        assert part.lower() in text.lower(), text
    sections = re.findall(r"^  - (\w+): ([\d,]+) characters(?: · (.*))?$", text, re.MULTILINE)
    assert {name: files for name, _, files in sections if files}.items() >= {
        "user": "`.halo/USER.md`",
        "agent": "`.halo/agents/lead/AGENT.md`",
        "project": "`.halo/INDEX.md`",
    }.items()
    assert next(size for name, size, _ in sections if name == "agent") == "9"
    assert str(workspace.parent) not in text.replace(f"`{workspace}`", "")  # no path of the machine beside its own


@pytest.mark.parametrize("verb", ["info", "context", "stop", "interrupt", "compact"])
async def test_a_session_that_has_not_begun_has_nothing_to_tell(ask, verb):
    answer = await ask(f"/session {verb}", session_id="to-come")
    assert answer.text == "There is no session yet. Write something first." and answer.switch_to is None


@pytest.mark.parametrize("verb", ["stop", "interrupt"])
async def test_there_may_be_nothing_to_end(ask, row, verb, redis_server):
    await many(row, "s1")
    assert (await ask(f"/session {verb}", session_id="s1")).text == "Nothing is running here."
