"""docs/commands.md says what the tables say."""

import re
from pathlib import Path

import yaml

from agents_app.config.command_names import BUILTIN_COMMANDS
from agents_app.config.files import BUNDLED

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "commands.md").read_text()


def test_every_verb_is_in_the_document_with_the_level_it_needs():
    rows = re.findall(r"^\| `/(\w+)(?: (\w+))?[^`]*` \| (\w*) ?\|", TEXT, re.MULTILINE)
    assert {(noun, verb): level for noun, verb, level in rows} == {
        (noun, verb): level for noun, verbs in BUILTIN_COMMANDS.items() for verb, level in (verbs or {"": ""}).items()
    }


def test_every_short_form_that_comes_with_halo_is_in_the_document():
    short: list[str] = []
    long: list[str] = []
    table = TEXT.split("## Short forms")[1]
    for left, right in re.findall(r"^\| ((?:`[^`]+` ?)+) \| (.*`) *(?:of .*)?\|$", table, re.MULTILINE):
        short += re.findall(r"`([^`]+)`", left)
        long += re.findall(r"`([^`]+)`", right)
    documented = {one.removesuffix(" <n>"): other.removesuffix(" <n>") for one, other in zip(short, long, strict=True)}
    seed = yaml.safe_load((BUNDLED / "seed" / "aliases.yaml").read_text())
    assert documented == {**seed["top"], **seed["verb"]}
