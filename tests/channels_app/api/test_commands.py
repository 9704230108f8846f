"""GET commands: what the page offers while one writes."""

import pytest

from agents_app.config.command_names import BUILTIN_COMMANDS
from tests.support.session_rows import make_session, make_workspace


@pytest.fixture
def skilled(home, workspace):
    """The workspace, with an agent that holds two skills."""
    for skill_id, front in (
        ("review", "command: /review\nrequiresAccess: workspace"),
        ("cron", "command: /cron\nverbs: [{name: list, desc: All}, {name: create, requiresAccess: full}]"),
    ):
        folder = workspace / ".halo" / "skills" / skill_id
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {skill_id}\ndescription: About {skill_id}\n{front}\n---\nGo.\n")
    folder = workspace / ".halo" / "agents" / "lead"
    folder.mkdir(parents=True)
    (folder / "agent.yaml").write_text("name: Lead\nmodel: auto\nskills: [review, cron]\n")
    return workspace


def listed(client, **query) -> dict:
    answer = client.get("/api/commands", query)
    assert answer.status_code == 200, answer.content
    return {command["name"]: command for command in answer.json()["commands"]}


def test_strangers_are_told_nothing(stranger):
    assert stranger.get("/api/commands").status_code == 401


def test_without_a_session_or_an_agent_there_are_halos_own_alone(client, skilled):
    for query in ({}, {"projectId": str(skilled)}):
        found = listed(client, **query)
        assert list(found) == [f"/{noun}" for noun in BUILTIN_COMMANDS]
        for noun, verbs in BUILTIN_COMMANDS.items():
            command = found[f"/{noun}"]
            assert command["source"] == "builtin" and command["description"] and "skillId" not in command
            assert {verb["name"]: verb["requires"] for verb in command["verbs"]} == verbs
            assert all(verb["description"] for verb in command["verbs"])


def test_an_agent_brings_the_commands_of_its_skills(client, skilled):
    found = listed(client, projectId=str(skilled), agentId="lead")
    assert found["/review"] == {
        "name": "/review", "description": "About review", "source": "skill", "skillId": "review", "verbs": [],
    }  # fmt: skip
    assert found["/cron"]["verbs"] == [
        {"name": "list", "description": "All", "requires": "readonly"},
        {"name": "create", "description": "", "requires": "full"},
    ]
    assert "/review" not in listed(client, projectId=str(skilled), agentId="default")


def test_a_session_brings_those_of_its_agent_at_the_level_of_who_is_signed_in(client, skilled):
    row = make_workspace(skilled)
    for level in ("full", "workspace", "readonly"):
        make_session(row, f"s_{level}", agent_id="lead", access_level=level)
        found = listed(client, projectId=str(skilled), sessionId=f"s_{level}")
        assert "/review" in found and [verb["name"] for verb in found["/cron"]["verbs"]] == ["list", "create"]


def test_a_session_to_come_has_the_agent_that_was_chosen(client, skilled):
    assert "/review" in listed(client, projectId=str(skilled), sessionId="to-come", agentId="lead")


def test_what_could_not_be_used_is_told(client, skilled, home):
    (home.global_dir / "aliases.yaml").write_text("top: [\n")
    other = skilled / ".halo" / "skills" / "another"
    other.mkdir()
    (other / "SKILL.md").write_text("---\nname: another\ndescription: Also\ncommand: /review\n---\nGo.\n")
    (skilled / ".halo" / "agents" / "lead" / "agent.yaml").write_text(
        "name: Lead\nmodel: auto\nskills: [review, another]\n"
    )
    query = {"projectId": str(skilled), "agentId": "lead"}
    warnings = client.get("/api/commands", query).json()["warnings"]
    assert len(warnings) == 2 and "aliases.yaml" in warnings[0] and "/review" in warnings[1]
    (home.global_dir / "aliases.yaml").write_text("top: {/review: /session list}\n")
    assert "'review' is not reached by /review" in client.get("/api/commands", query).json()["warnings"][0]


@pytest.mark.parametrize(
    ("query", "code"),
    [({"projectId": "relative"}, "workspace_not_absolute"), ({"sessionId": "../x"}, "bad_session_id"),
     ({"agentId": "../x"}, "bad_agent_id"), ({"projectId": "/no/such"}, "workspace_missing")],
)  # fmt: skip
def test_what_names_nothing_is_refused(client, home, workspace, query, code):
    answer = client.get("/api/commands", {"projectId": str(workspace), **query})
    assert answer.json()["code"] == code


def test_descriptions_are_in_the_language_of_the_settings(client, skilled, home):
    assert listed(client)["/help"]["description"] == "This list"
    home.settings_yaml.write_text("general: {language: zh-CN}\n")
    for query in ({}, {"projectId": str(skilled)}):
        assert listed(client, **query)["/help"]["description"] == "显示此列表"
