"""Who may use which command, and what goes to the agent instead."""

import re

import pytest

from agents_app.config.command_names import BUILTIN_COMMANDS, LEVELS
from channels_app.commands import wording
from channels_app.commands.dispatch import VERBS

pytestmark = pytest.mark.django_db(transaction=True)

AGENT_SKILL = (
    "command: /agent",
    "verbs:",
    "  - {name: list, builtin: true, desc: List}",
    "  - {name: create, requiresAccess: full, desc: Make an agent}",
    "  - {name: explain, desc: Explain an agent}",
)


def test_every_verb_of_the_table_has_its_code_and_its_words_in_both_languages():
    assert {noun: set(verbs) for noun, verbs in VERBS.items()} == {
        noun: set(verbs) for noun, verbs in BUILTIN_COMMANDS.items() if verbs
    }
    for noun, verbs in BUILTIN_COMMANDS.items():
        for key in (noun, *(f"{noun}.{verb}" for verb in verbs)):
            assert re.search("[\u4e00-\u9fff]", wording.say("zh", key)) and wording.say("en", key).isascii()


def test_both_languages_name_the_same_values_and_every_sentence_has_both():
    for key, texts in wording._TEXTS.items():
        english, chinese = (set(re.findall(r"\{(\w+)\}", text)) for text in texts)
        assert english == chinese and all(texts), key


@pytest.mark.parametrize(
    "text", ["/nonexistent", "/tool shell_exec {}", "/evo", "/cron list", "/acp kiro", "/goal status"]
)
async def test_a_word_that_is_nobodys_goes_to_the_agent(ask, text):
    assert await ask(text) is None


@pytest.mark.parametrize("level", LEVELS)
async def test_a_bare_command_lists_the_verbs_that_the_level_reaches(ask, level, write_agent):
    write_agent("lead")  # without skills
    for noun, verbs in BUILTIN_COMMANDS.items():
        if not verbs:
            continue
        for text in (f"/{noun}", f"/{noun} help"):
            listed = re.findall(rf"`/{noun} (\w+)`", (await ask(text, access=level)).text)
            assert listed == [verb for verb, needed in verbs.items() if LEVELS.index(level) >= LEVELS.index(needed)]


@pytest.mark.parametrize(
    ("text", "level", "needed"),
    [
        ("/agent delete x", "workspace", "full"),
        ("/skill delete x", "workspace", "full"),
        ("/skill disable x", "readonly", "workspace"),
        ("/skill enable x", "readonly", "workspace"),
        ("/workspace switch /tmp", "workspace", "full"),
        ("/session list", "observer", "readonly"),
    ],
)
async def test_a_verb_beyond_the_level_is_refused_with_the_level_it_needs(ask, text, level, needed):
    answer = (await ask(text, access=level)).text
    assert f"needs the access level {needed}; yours is {level}" in answer
    chinese = (await ask(text, access=level, language="zh")).text
    assert f"需要 {needed} 权限" in chinese


async def test_a_verb_that_nobody_has_is_answered_with_those_there_are(ask, write_agent):
    write_agent("lead")
    answer = await ask("/session explode `now`")
    assert "has no verb `explode`" in answer.text and "`/session list`" in answer.text
    answer = await ask("/workspace setup")
    assert "has no verb `setup`" in answer.text


async def test_a_verb_of_the_namesake_skill_goes_to_the_agent_and_is_listed(ask, write_agent, write_skill):
    write_skill("agent", *AGENT_SKILL)
    write_agent("lead", skills=("agent",))
    assert await ask("/agent create a reviewer") is None
    assert await ask("/agent explain", access="readonly") is None
    listed = (await ask("/agent")).text
    assert "`/agent create`: Make an agent" in listed and listed.count("`/agent list`") == 1
    assert "needs the access level full" in (await ask("/agent create x", access="workspace")).text
    below = (await ask("/agent", access="workspace")).text
    assert "create" not in below and "delete" not in below and "`/agent explain`" in below


async def test_a_skill_that_the_agent_does_not_hold_answers_no_verb(ask, write_agent, write_skill):
    write_skill("agent", *AGENT_SKILL)
    write_agent("lead")
    assert "has no verb `create`" in (await ask("/agent create x")).text


async def test_the_builtin_verb_wins_over_the_skill_of_that_name(ask, write_agent, write_skill):
    write_skill("agent", "command: /agent", "verbs:", "  - {name: list, desc: Mine}")
    write_agent("lead", skills=("agent",))
    assert "`lead`" in (await ask("/agent list")).text
    assert "Mine" not in (await ask("/agent")).text


async def test_a_command_of_a_skill_goes_to_the_agent_unless_the_level_is_too_low(ask, write_agent, write_skill):
    write_skill("review", "command: /review", "requiresAccess: workspace")
    write_agent("lead", skills=("review",))
    assert await ask("/review this") is None
    assert await ask("/review this", access="workspace") is None
    answer = await ask("/review this", access="readonly")
    assert "`/review` needs the access level workspace; yours is readonly" in answer.text


async def test_each_verb_of_a_skills_own_command_has_its_level(ask, write_agent, write_skill):
    write_skill("cron", "command: /cron", "verbs:", "  - {name: list}", "  - {name: create, requiresAccess: full}")
    write_agent("lead", skills=("cron",))
    assert await ask("/cron list", access="readonly") is None
    assert "`/cron create` needs the access level full" in (await ask("/cron create x", access="workspace")).text


async def test_help_lists_what_the_caller_may_use(ask, home, write_agent, write_skill):
    write_skill("review", "command: /review", "requiresAccess: full")
    write_agent("lead", skills=("review",))
    (home.global_dir / "aliases.yaml").write_text("top: {/s: /session}\n")
    full = (await ask("/help")).text
    assert "`/session <verb>`" in full and "`/review`: Reviews changes" in full and "`/s` → `/session`" in full
    assert "delete" in full
    below = (await ask("/help", access="readonly")).text
    assert "delete" not in below and "/review" not in below
    assert "/evo" not in full and "/cron" not in full


async def test_help_lists_both_kinds_of_short_forms_and_the_marker_of_a_folder(ask, home):
    (home.global_dir / "aliases.yaml").write_text("top: {/s: /session}\nverb: {ls: list}\n")
    text = (await ask("/help")).text
    assert "Short forms: `/s` → `/session`" in text and "Short forms of verbs: `ls` → `list`" in text
    assert "`@scope <folder>`" in text


async def test_help_tells_which_alias_takes_a_skills_word(ask, home, write_agent, write_skill):
    (home.global_dir / "aliases.yaml").write_text("top: {/review: /session list, /other: /session}\n")
    write_skill("review", "command: /review")
    write_agent("lead", skills=("review",))
    text = (await ask("/help")).text
    assert "/review stands for /session list, so the skill 'review' is not reached by /review." in text
    assert "/other stands for" not in text


async def test_schedules_are_offered_from_the_level_workspace_on(ask):
    offered = "`/cron`: Schedules agents"
    assert offered in (await ask("/help")).text and offered in (await ask("/help", access="workspace")).text
    assert "/cron" not in (await ask("/help", access="readonly")).text
    assert await ask("/cron list", access="workspace") is None  # for the agent, with the skill in its place
    assert "needs the access level workspace" in (await ask("/cron list", access="readonly")).text


async def test_help_tells_of_a_faulty_file_of_aliases(ask, home):
    (home.global_dir / "aliases.yaml").write_text("top: [\n")
    assert "aliases.yaml" in (await ask("/help")).text


async def test_help_still_helps_beside_an_agent_that_cannot_be_read(ask, workspace):
    folder = workspace / ".halo" / "agents" / "default"
    folder.mkdir()
    (folder / "agent.yaml").write_text("name: [")
    answer = (await ask("/help", agent_id="default")).text
    assert "/session" in answer and "agent.yaml" in answer


async def test_a_workspace_that_is_gone_is_an_answer_not_a_fault(ask):
    assert "/no/such/folder" in (await ask("/session list", workspace="/no/such/folder")).text
