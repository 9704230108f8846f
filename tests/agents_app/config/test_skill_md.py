"""What SKILL.md and config.yaml may say, and what is said of one that does not hold."""

import random
from pathlib import Path

import pytest

from agents_app.config.declarations import read_declarations
from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.setting_field import SettingField
from agents_app.config.skill_md import MAX_SKILL_BYTES, SkillFile, Verb, parse_skill_md
from tests.agents_app.config.support import write

PATH = Path("/skills/review/SKILL.md")

FULL = """---
name: review
description: >
  Reviews a change.
  Use it before a commit.
command: /Review
verbs:
  - { name: quick, desc: "Only the\\n worst" }
  - { name: Deep, requiresAccess: full, desc: All of it }
  - { name: list, builtin: true }
user-invocable: true
disable-model-invocation: true
requiresAccess: workspace
license: MIT
metadata: { a: 1 }
allowed-tools: Read Grep
---

# Review

Look at $1.
"""


def parse(text: str, path: Path = PATH) -> SkillFile:
    return parse_skill_md(path, text.encode())


def fields(text: str) -> SkillFile:
    return parse(f"---\nname: review\ndescription: d\n{text}\n---\nBody")


class TestSkillMd:
    def test_every_field(self) -> None:
        assert parse(FULL) == SkillFile(
            name="review",
            description="Reviews a change. Use it before a commit.",
            body="# Review\n\nLook at $1.",
            command="review",
            verbs=(
                Verb("quick", description="Only the worst"),
                Verb("deep", requires="full", description="All of it"),
                Verb("list", builtin=True),
            ),
            user_invocable=True,
            model_invocable=False,
            requires="workspace",
        )

    def test_only_what_is_required(self) -> None:
        found = parse("---\nname: review\ndescription: d\n---\n")
        assert found == SkillFile(name="review", description="d")
        assert (found.user_invocable, found.model_invocable, found.requires, found.body) == (True, True, None, "")

    @pytest.mark.parametrize(
        "text",
        [
            FULL.replace("\n", "\r\n"),
            "\ufeff" + FULL,
            "\ufeff\n\n" + FULL,
            FULL.replace("---\n", "---  \n"),
        ],
        ids=["CRLF", "BOM", "blank lines before", "blank space"],
    )
    def test_other_editors(self, text: str) -> None:
        assert parse(text) == parse(FULL)

    def test_a_rule_line_in_the_body_is_no_front_matter(self) -> None:
        assert parse(FULL + "\n---\n\nMore").body == "# Review\n\nLook at $1.\n\n---\n\nMore"

    @pytest.mark.parametrize(
        ("text", "line", "words"),
        [
            ("# Review\n\nText", 1, "must begin with a front matter"),
            ("", 1, "must begin with a front matter"),
            ("---\nname: review\nText", 1, "is not closed"),
            ("---\nname: [a\n---\nText", 3, "not valid YAML"),
            ("---\nname: review\ndescription: Use this: now\n---\n", 3, "holds a colon in quotes"),
            ("\n\n---\nname: a\nb: *c\n---\n", 5, "aliases"),
        ],
    )
    def test_no_usable_front_matter(self, text: str, line: int, words: str) -> None:
        with pytest.raises(ConfigFileInvalid, match=words) as caught:
            parse(text)
        assert caught.value.line == line

    def test_a_file_without_end(self) -> None:
        with pytest.raises(ConfigFileInvalid, match="larger than 256 KB"):
            parse(FULL + "x" * MAX_SKILL_BYTES)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("command: /a b", "Line 4: `command` must be one word such as `/review`"),
            ("command: /../x", "Line 4: `command` must be one word"),
            ("requiresAccess: root", "Line 4: `requiresAccess` must be one of readonly, workspace, full."),
            ("requiresAccess: observer", "Line 4: `requiresAccess` must be one of"),
            ("user-invocable: 1", "Line 4: `user-invocable` must be true or false."),
            ("disable-model-invocation: often", "Line 4: `disable-model-invocation` must be true or false."),
            ("verbs: list", "Line 4: `verbs` must be a list of blocks"),
            ("verbs:\n  - {name: a}\n  - {desc: b}", "Line 6: `verbs[1].name` is missing"),
            ("verbs:\n  - {name: a}\n  - {name: b c}", "Line 6: `verbs[1].name` must be one word"),
            ("verbs:\n  - name: a\n    requiresAccess: all", "Line 6: `verbs[0].requiresAccess` must be one of"),
        ],
    )
    def test_problems_name_their_line(self, text: str, problem: str) -> None:
        problems = fields(text).problems
        assert len(problems) == 1
        assert problems[0].startswith(problem)

    def test_what_is_missing(self) -> None:
        problems = parse("---\nname:\n---\n").problems
        assert problems == (
            "Line 1: `description` is missing; it must be a text.",
            "Line 2: `name` is missing; it must be a text.",
        )

    def test_misspelt_names_are_told_beside_what_is_missing(self) -> None:
        text = "---\nname: web\ndescripton: x\nverbs:\n  - {name: go, requiresAcess: full}\n---\n"
        assert [each.rpartition(" Did you mean ")[2] for each in parse(text).problems] == [
            "Line 1: `description` is missing; it must be a text.",
            "`description`?",
            "`requiresAccess`?",
        ]

    @pytest.mark.parametrize(
        ("text", "warning"),
        [
            ("comand: /x", "Line 4: `comand` is not a field Halo knows; it is ignored."),
            ("verbs:\n  - {name: a, access: full}", "Line 5: `verbs[0].access` is not a field Halo knows"),
            ("verbs:\n  - {name: a}\n  - {name: A}", "Line 6: `verbs[1].name`: the verb 'a' stands there twice"),
            ("command: /x\nuser-invocable: false", "Line 4: `command` has no effect beside `user-invocable: false`."),
        ],
    )
    def test_warnings(self, text: str, warning: str) -> None:
        found = fields(text)
        assert len(found.warnings) == 1 and found.warnings[0].startswith(warning)
        assert found.problems == ()

    def test_a_name_that_is_not_the_folders(self) -> None:
        found = parse(FULL, Path("/skills/code-review/SKILL.md"))
        assert found.warnings == ("Line 2: `name` is 'review', the folder 'code-review': the folder is the id.",)

    def test_a_description_without_end(self) -> None:
        found = parse(f"---\nname: review\ndescription: {'x' * 5000}\n---\n")
        assert len(found.description) == 1024
        assert found.warnings == ("Line 3: `description` is longer than 1,024 characters; the rest is cut off.",)

    def test_T6_a_name_without_end(self) -> None:
        found = parse(f"---\nname: {'x' * 5000}\ndescription: d\n---\n")
        assert len(found.name) == 200
        assert found.warnings[0] == "Line 2: `name` is longer than 200 characters; the rest is cut off."

    def test_any_bytes_give_a_skill_or_a_sentence(self) -> None:
        made = random.Random(7)
        pieces = [b"---\n", b"name: a\n", b"description: b\n", b"\xff\xfe", b"verbs:\n", b"- ", b"{", b"}", b": ",
                  b"\r\n", "\u2028".encode(), b"\0", b"? ", b"!!int x\n", b"- - -\n"]  # fmt: skip
        for _ in range(600):
            data = b"---\n" + b"".join(made.choices(pieces, k=made.randrange(9))) + b"\n---\n"
            try:
                found = parse_skill_md(PATH, data)
            except ConfigFileInvalid as error:
                assert error.problem
            else:
                assert found.problems or (found.name and found.description)


class TestConfigYaml:
    def test_every_field(self, tmp_path: Path) -> None:
        text = """
params:
  - key: api_key
    description: The key
    description_zh: 密钥
    default: <<ACME_KEY>>
    secret: true
  - { key: deep.er, default: 3, type: int, low: 1, high: 4 }
  - { key: flag, default: true, type: boolean }
  - { key: mode, options: [fast, 2], globalOnly: true }
  - { key: text, default: true }
displayName_zh: 网页
description: About it
secrets:
  - key: client
"""
        found, owner = read_declarations(write(tmp_path / "config.yaml", text)), tmp_path.name
        assert found.params == (
            SettingField(
                "api_key",
                (owner, "params", "api_key"),
                default="<<ACME_KEY>>",
                description="The key",
                description_zh="密钥",
                secret=True,
            ),
            SettingField("deep.er", (owner, "params", "deep", "er"), type="int", default=3, low=1, high=4),
            SettingField("flag", (owner, "params", "flag"), type="boolean", default=True),
            SettingField("mode", (owner, "params", "mode"), type="enum", options=("fast", "2"), global_only=True),
            SettingField("text", (owner, "params", "text"), default="true"),
        )
        client = SettingField("client", (owner, "secrets", "client"), kind="secret", secret=True, global_only=True)
        assert found.secrets == (client,)
        assert (found.display_name_zh, found.description, found.description_zh) == ("网页", "About it", "")
        assert found.warnings == ()

    def test_none(self, tmp_path: Path) -> None:
        assert read_declarations(tmp_path / "config.yaml").params == ()

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("params:\n  - description: x", "Line 2: `params[0].key` is missing"),
            ("params:\n  - key: a b", "Line 2: `params[0].key` must be a name"),
            ("params:\n  - key: a\n  - key: a", "Line 3: `params[1].key`: 'a' is declared twice"),
            ("params:\n  - key: a\n    secret: sure", "Line 3: `params[0].secret` must be true or false"),
            ("params:\n  - key: a\n    default: [1]", "Line 3: `params[0].default` must be a text"),
            ("params:\n  - key: a\n    options: 1", "Line 3: `params[0].options` must be a list"),
            ("params: 1", "Line 1: `params` must be a list of blocks"),
        ],
    )
    def test_problems(self, text: str, problem: str, tmp_path: Path) -> None:
        with pytest.raises(ConfigFileInvalid) as caught:
            read_declarations(write(tmp_path / "config.yaml", text))
        assert caught.value.problem.startswith(problem)

    def test_warnings(self, tmp_path: Path) -> None:
        path = write(tmp_path / "config.yaml", "params:\n  - key: a\n    type: number\n    hidden: true\nextra: 1")
        assert read_declarations(path).warnings == (
            "config.yaml: Line 3: `params[0].type` is none of string, int, float, boolean, enum; "
            "it is taken for a string.",
            "config.yaml: Line 4: `params[0].hidden` is not a field Halo knows; it is ignored.",
            "config.yaml: Line 5: `extra` is not a field Halo knows; it is ignored.",
        )

    def test_misspelt_fields_of_a_broken_file(self, tmp_path: Path) -> None:
        path = write(tmp_path / "config.yaml", "params:\n  - kye: a\n    secretz: true\n")
        with pytest.raises(ConfigFileInvalid) as caught:
            read_declarations(path)
        assert "`params[0].key` is missing" in caught.value.problem
        assert "Did you mean `key`?" in caught.value.problem and "Did you mean `secret`?" in caught.value.problem

    @pytest.mark.parametrize(
        ("field", "warning"),
        [
            ("default: warm\n    type: int", "`params[0].default` must be a whole number; there is none then."),
            (
                "default: 5\n    type: int\n    low: 1\n    high: 3",
                "`params[0].default` must be a whole number from 1 to 3",
            ),
            ("type: enum", "`params[0].type` is enum, and no `options` say which values are allowed"),
            ("type: list", "`params[0].type` is none of string, int"),
            ("key: a", "`params[0].key` stands twice in its block"),
        ],
    )
    def test_what_is_odd_costs_the_field_nothing_else(self, field: str, warning: str, tmp_path: Path) -> None:
        found = read_declarations(write(tmp_path / "config.yaml", f"params:\n  - key: a\n    {field}"))
        assert [each.key for each in found.params] == ["a"] and found.params[0].default is None
        assert len(found.warnings) == 1 and found.warnings[0].startswith(f"config.yaml: Line 3: {warning}")
