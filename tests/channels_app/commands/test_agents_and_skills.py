"""`/agent …`, `/skill …` and `/workspace …` over real folders."""

from pathlib import Path

import pytest
from asgiref.sync import sync_to_async

from agents_app.models import DisabledItem
from halo_project.layout import HomeLayout
from sessions_app.models import Workspace
from tests.support.session_rows import make_session, make_workspace

pytestmark = pytest.mark.django_db(transaction=True)


async def test_the_agents_are_numbered_and_the_current_one_is_marked(ask, write_agent):
    write_agent("writer")
    (write_agent("broken") / "agent.yaml").write_text("name: [")
    lines = (await ask("/agent list")).text.split("\n")
    assert lines[0].startswith("1. Writer (`writer`): Does it — current")
    assert any("(`default`)" in line for line in lines)
    assert "cannot be read" in next(line for line in lines if "`broken`" in line)
    assert not any("__" in line for line in lines)  # internal agents are nobody's to talk to


@pytest.mark.parametrize("wanted", ["1", "writer"])
async def test_switching_gives_a_new_session_with_that_agent(ask, write_agent, wanted):
    write_agent("writer")
    answer = await ask(f"/agent switch {wanted}", session_prefix="tg_1_", access="readonly")
    assert answer.switch_to.startswith("tg_1_") and answer.agent_id == "writer" and "Writer" in answer.text


@pytest.mark.parametrize("wanted", ["nobody", "0", "999", "1234567", "../writer", "__score__", ""])
async def test_nobody_else_can_be_switched_to(ask, write_agent, wanted):
    write_agent("writer")
    answer = await ask(f"/agent switch {wanted}")
    assert answer.switch_to is None and answer.text


async def test_an_agent_that_is_off_or_broken_cannot_be_switched_to(ask, write_agent, workspace):
    write_agent("writer")
    (write_agent("broken") / "agent.yaml").write_text("name: [")
    row = await sync_to_async(make_workspace)(workspace)
    await DisabledItem.objects.acreate(
        workspace=row, item_type="agent", item_id="writer", scope="workspace", disabled_at=row.created_at
    )
    assert "switched off" in (await ask("/agent list")).text
    answer = await ask("/agent switch writer")
    assert answer.switch_to is None and "switched off" in answer.text
    answer = await ask("/agent switch broken")
    assert answer.switch_to is None and "agent.yaml" in answer.text


async def test_an_agent_is_described_the_current_one_without_a_name(ask, write_agent):
    write_agent("writer", skills=("review",))
    for text in ("/agent desc writer", "/agent desc"):
        answer = (await ask(text)).text
        assert "**Writer** (`writer`)" in answer and "Does it" in answer and "review" in answer
        assert "this workspace" in answer and "rehearsal" in answer.lower()


async def test_a_list_gives_the_whole_reason_why_something_cannot_be_used(ask, write_agent, write_skill, workspace):
    write_agent("writer")
    (write_agent("broken") / "agent.yaml").write_text("description: " + "Much to say. " * 9 + "\n")
    (write_skill("torn") / "SKILL.md").write_text("no front matter")
    agents = (await ask("/agent list")).text
    assert "cannot be read: agent.yaml: " in agents and "`name` is missing" in agents
    skills = (await ask("/skill list")).text
    line = next(line for line in skills.split("\n") if "`torn`" in line)
    assert "cannot be read: SKILL.md: " in line and not line.endswith("…")
    assert str(workspace) not in agents + skills


async def test_an_agent_that_no_model_answers_for_is_marked_and_said_at_the_switch(ask, write_agent):
    own = "model: {provider: anthropic, id: m, endpoint: 'https://api.anthropic.com'}"
    (write_agent("keyless") / "agent.yaml").write_text(f"name: Keyless\n{own}\n")
    (write_agent("lost") / "agent.yaml").write_text(f"name: Lost\n{own.replace('anthropic,', 'nowhere,')}\n")
    listed = {line.split("`")[1]: line for line in (await ask("/agent list")).text.split("\n")}
    assert "cannot answer: " in listed["keyless"] and "ANTHROPIC_API_KEY" in listed["keyless"]
    assert "cannot answer: " in listed["lost"] and "nowhere" in listed["lost"]
    assert "cannot answer" not in listed["default"]
    answer = await ask("/agent switch keyless")
    assert answer.agent_id == "keyless" and "cannot answer yet" in answer.text and "ANTHROPIC_API_KEY" in answer.text


async def test_a_description_says_that_an_agent_is_off_and_which_names_lead_nowhere(ask, write_agent, workspace):
    folder = write_agent("writer", skills=("reviw",))
    with (folder / "agent.yaml").open("a") as file:
        file.write("team: [defalt]\n")
    row = await sync_to_async(make_workspace)(workspace)
    assert "State" not in (await ask("/agent desc writer")).text
    await DisabledItem.objects.acreate(
        workspace=row, item_type="agent", item_id="writer", scope="workspace", disabled_at=row.created_at
    )
    answer = (await ask("/agent desc writer")).text
    assert "- State: switched off" in answer
    assert "names 'defalt'" in answer and "names 'reviw'" in answer


async def test_deleting_an_agent_takes_the_folder_in_effect_and_shows_the_one_below(ask, write_agent, home):
    own, installed = write_agent("writer", "Own"), write_agent("writer", "Installed", place=home.global_agents)
    assert (await ask("/agent delete writer")).text == "Deleted: Own (this workspace)."
    assert not own.exists() and installed.exists()
    assert "**Installed**" in (await ask("/agent desc writer")).text
    assert (await ask("/agent delete writer")).text == "Deleted: Installed (this installation)."
    assert not installed.exists()
    assert "There is no agent writer" in (await ask("/agent delete writer")).text


async def test_what_comes_with_halo_cannot_be_deleted_and_a_number_deletes_nothing(ask, write_agent):
    assert "comes with Halo" in (await ask("/agent delete default")).text
    folder = write_agent("writer")
    for wanted in ("1", "", "../agents/writer", "writer/"):
        await ask(f"/agent delete {wanted}")
        assert folder.exists()


async def test_an_agent_that_cannot_be_read_can_be_deleted(ask, write_agent):
    folder = write_agent("broken")
    (folder / "agent.yaml").write_text("name: [")
    await ask("/agent delete broken")
    assert not folder.exists()


async def test_deleting_a_linked_folder_takes_the_link_only(ask, write_agent, workspace, tmp_path):
    elsewhere = write_agent("writer", place=tmp_path / "mine")
    link = workspace / ".halo" / "agents" / "writer"
    link.symlink_to(elsewhere)
    await ask("/agent delete writer")
    assert not link.exists() and (elsewhere / "agent.yaml").exists()


async def test_a_skill_is_switched_off_and_on_and_told_when_it_was_already(ask, write_skill, write_agent):
    write_skill("review", "command: /review")
    write_agent("lead", skills=("review",))
    assert "`/review`: Reviews changes" in (await ask("/skill list")).text
    assert "is switched off" in (await ask("/skill disable review", access="workspace")).text
    assert "already" in (await ask("/skill disable review")).text
    assert "switched off" in (await ask("/skill list")).text
    assert "/review" not in (await ask("/help")).text
    assert "is switched on" in (await ask("/skill enable review", access="workspace")).text
    assert "already" in (await ask("/skill enable review")).text
    assert "switched off" not in (await ask("/skill list")).text


async def test_a_skill_is_described(ask, write_skill):
    write_skill(
        "review", "command: /review", "requiresAccess: workspace", "verbs:", "  - {name: all, desc: Everything}"
    )
    answer = (await ask("/skill desc review")).text
    for part in ("**review**", "Reviews changes", "this workspace", "`/review`", "workspace", "`all`: Everything"):
        assert part in answer


async def test_deleting_a_skill_takes_its_folder(ask, write_skill, home):
    own, installed = write_skill("review"), write_skill("review", place=home.global_skills)
    await ask("/skill disable review")
    assert (await ask("/skill delete review")).text == "Deleted: review (this workspace)."
    assert not own.exists() and installed.exists()
    assert not await DisabledItem.objects.aexists()  # another one of that name is not born switched off


@pytest.mark.parametrize("verb", ["desc", "disable", "enable", "delete"])
async def test_a_skill_must_be_named_and_exist(ask, verb):
    assert f"`/skill {verb} <id>`" in (await ask(f"/skill {verb}")).text
    assert "There is no skill x" in (await ask(f"/skill {verb} x")).text


async def test_the_workspace_is_described(ask, workspace, write_agent):
    write_agent("writer")
    row = await sync_to_async(make_workspace)(workspace)
    for session_id in ("web_a_1", "web_b_1", "web_b_2"):
        await sync_to_async(make_session)(row, session_id)
    answer = (await ask("/workspace info")).text
    assert f"`{workspace}`" in answer and "Sessions: 3" in answer and "Writer (`writer`)" in answer
    below = (await ask("/workspace info", access="readonly", session_prefix="web_a_")).text
    assert "Sessions: 1" in below and "Access level: readonly" in below


async def test_switching_the_workspace_opens_the_folder(ask, tmp_path):
    folder = tmp_path / "other place"
    folder.mkdir()
    answer = await ask(f"/workspace switch {folder}", session_prefix="tg_1_")
    assert answer.workspace == str(folder.resolve()) and answer.switch_to.startswith("tg_1_")
    assert (folder / ".halo" / "sessions").is_dir()
    assert await Workspace.objects.filter(path=answer.workspace).aexists()


async def test_the_installations_own_folder_is_not_opened_nor_the_one_around_it(ask, home, settings, tmp_path):
    settings.HALO_HOME = HomeLayout(tmp_path / ".halo")
    settings.HALO_HOME.prepare()
    for folder in (tmp_path, tmp_path / ".halo"):
        answer = await ask(f"/workspace switch {folder}")
        assert answer.workspace is None and "the installation's own files" in answer.text
    assert not (tmp_path / ".halo" / ".halo").exists() and not (tmp_path / ".halo" / "sessions").exists()


@pytest.mark.parametrize("wanted", ["", "relative", "/no/such/folder", "/", __file__])
async def test_what_is_no_folder_of_ones_own_is_not_opened(ask, wanted):
    answer = await ask(f"/workspace switch {wanted}")
    assert answer.workspace is None and answer.switch_to is None and answer.text
    assert not Path("/no").exists()
