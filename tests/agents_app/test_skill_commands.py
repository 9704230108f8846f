"""Slash commands of skills: which there are, and what a typed one becomes."""

import logging
import time
from pathlib import Path
from typing import Any

import pytest

from agents_app.config import notices
from agents_app.config.params import Value
from agents_app.config.placeholders import PlaceholderValues
from agents_app.config.skill_md import Skill, Verb
from agents_app.config.skill_text import SkillValues
from agents_app.skill_commands import Expansion, Refusal, expand, skill_commands

VALUES = SkillValues(PlaceholderValues({"agent_name": "Aide"}), lambda name: Value(None, "none"))


def skill(skill_id: str = "review", **fields: Any) -> Skill:
    made = {"name": skill_id, "description": "d", "scope": "global", "folder": Path("/none"), "body": "Do $1.",
            "command": skill_id}  # fmt: skip
    return Skill(skill_id=skill_id, **{**made, **fields})


def typed(text: str, *skills: Skill, access: str = "full") -> Expansion | Refusal | None:
    return expand(text, skills, access, VALUES)


class TestCommands:
    def names(self, *skills: Skill) -> list[tuple[str, str]]:
        return [(each.command, each.skill.skill_id) for each in skill_commands(skills)[0]]

    def test_only_what_declares_one(self) -> None:
        assert self.names(skill(), skill("b", command=None), skill("c", user_invocable=False)) == [("review", "review")]

    def test_the_first_wins(self) -> None:
        first, second = skill("a", command="go"), skill("b", command="go")
        commands, warnings = skill_commands([first, second])
        assert [each.skill for each in commands] == [first]
        assert warnings == ["The skill 'b' cannot have /go: the skill 'a' has it."]

    def test_a_workspaces_before_the_installations(self) -> None:
        own = skill("b", command="go", scope="workspace")
        assert self.names(skill("a", command="go"), own) == [("go", "b")]

    def test_halos_own_are_not_taken(self) -> None:
        commands, warnings = skill_commands([skill("mine", command="help"), skill("other", command="agent")])
        assert commands == []
        assert warnings == [
            "The skill 'mine' cannot have /help: that command is Halo's own.",
            "The skill 'other' cannot have /agent: that command is Halo's own.",
        ]

    def test_a_namesake_answers_the_verbs_that_halo_does_not(self) -> None:
        verbs = (Verb("create"), Verb("list", builtin=True), Verb("delete"), Verb("new", builtin=True))
        commands, warnings = skill_commands([skill("agent", verbs=verbs)])
        assert [(each.command, each.extends, each.verbs) for each in commands] == [("agent", True, (Verb("create"),))]
        assert warnings == ["The skill 'agent' cannot answer /agent delete: Halo does."]

    def test_a_namesake_without_verbs(self) -> None:
        commands, warnings = skill_commands([skill("help")])
        assert commands == []
        assert warnings == ["The skill 'help' adds no verb to /help, which is Halo's own command."]

    def test_a_warning_is_logged_once(self, caplog: pytest.LogCaptureFixture) -> None:
        notices._logged.clear()
        with caplog.at_level(logging.WARNING):
            for skills in ([skill("help")], [skill()], [skill("help"), skill("agent")], [skill("help")]):
                skill_commands(skills)
        assert [record.message.split(" adds")[0] for record in caplog.records] == [
            "The skill 'help'",
            "The skill 'agent'",
        ]


class TestExpand:
    @pytest.mark.parametrize(
        ("text", "body"),
        [
            ("/review a.py", "Do a.py."),
            ("  /Review   a.py  ", "Do a.py."),
            ("/review\na.py\nmore", "Do a.py."),
            ('/review "a b" c', "Do a b."),
            ("/review", "Do ."),
        ],
    )
    def test_a_command(self, text: str, body: str) -> None:
        found = typed(text, skill())
        assert isinstance(found, Expansion)
        assert found.text == f"[Skill activated: /review]\n\n{body}"

    @pytest.mark.parametrize(
        "text", ["", "review a", "/", "/ review", "//review", "/reviewer", "/review/a.py", "see /review", "/usr/bin"]
    )
    def test_what_is_none(self, text: str) -> None:
        assert typed(text, skill()) is None

    def test_T6_a_text_that_would_grow_without_end_is_not_opened_up(self) -> None:
        began = time.perf_counter()
        found = typed("/review " + "x" * 2_000, skill(body="$1 " * 80_000))
        assert isinstance(found, Refusal) and found.code == "too_long"
        assert "more than 1,000,000 characters" in found.message
        assert isinstance(typed("/review " + "x " * 60_000, skill()), Refusal)
        assert isinstance(typed("/review " + "“x " * 30_000, skill()), Expansion)
        assert time.perf_counter() - began < 3

    def test_T6_notes_about_params_have_an_end(self) -> None:
        body = "".join(f"{{{{params.k{number}}}}} " for number in range(5_000))
        found = typed("/review", skill(body=body))
        assert isinstance(found, Expansion) and found.text.count("has no value here") == 100

    def test_a_verb_is_the_first_argument(self) -> None:
        cron = skill("cron", verbs=(Verb("create"),), body="Do $1 with $2: $ARGUMENTS")
        found = typed("/cron create daily", cron)
        assert isinstance(found, Expansion)
        assert (found.verb, found.args) == (Verb("create"), "create daily")
        assert found.text.endswith("Do create with daily: create daily")
        assert isinstance(typed("/cron every morning", cron), Expansion)

    @pytest.mark.parametrize(
        ("text", "answered"), [("create x", True), ("list", False), ("", False), ("nonsense", False)]
    )
    def test_of_halos_own_only_the_skills_verbs(self, text: str, answered: bool) -> None:
        agent = skill("agent", verbs=(Verb("create"), Verb("list", builtin=True)))
        assert isinstance(typed(f"/agent {text}", agent), Expansion) is answered

    @pytest.mark.parametrize(
        ("text", "access", "refused"),
        [
            (
                "/cron list",
                "readonly",
                "/cron list needs the access level 'workspace'; this conversation has 'readonly'.",
            ),
            ("/cron list", "workspace", None),
            (
                "/cron create x",
                "workspace",
                "/cron create needs the access level 'full'; this conversation has 'workspace'.",
            ),
            (
                '/cron "Create" x',
                "workspace",
                "/cron create needs the access level 'full'; this conversation has 'workspace'.",
            ),
            ("/cron create x", "full", None),
            (
                "/cron anything",
                "readonly",
                "/cron needs the access level 'workspace'; this conversation has 'readonly'.",
            ),
            (
                "/cron list",
                "observer",
                "/cron list needs the access level 'workspace'; this conversation has 'observer'.",
            ),
        ],
    )
    def test_access(self, text: str, access: str, refused: str | None) -> None:
        cron = skill("cron", requires="workspace", verbs=(Verb("list"), Verb("create", requires="full")))
        found = typed(text, cron, access=access)
        if refused is None:
            assert isinstance(found, Expansion)
        else:
            assert found == Refusal(refused)
