"""Which messages are commands, and what their short forms mean."""

import os
import shutil

import pytest

from agents_app.config.command_names import BUILTIN_COMMANDS
from agents_app.config.files import BUNDLED
from channels_app.commands.aliases import load_aliases
from channels_app.commands.text import read_command

SEED = BUNDLED / "seed" / "aliases.yaml"


@pytest.fixture
def seeded(halo_home):
    shutil.copy(SEED, halo_home.global_dir / "aliases.yaml")
    return halo_home


@pytest.mark.parametrize("text", ["hello", "a /session", "/", "/ session", "/home/me/x is broken", "", "//", "// no"])
def test_a_message_that_does_not_begin_with_a_slash_word_is_no_command(halo_home, text):
    assert read_command(text, halo_home) is None


@pytest.mark.parametrize(
    ("text", "name", "args"),
    [
        ("/help", "help", ""),
        ("  /Session   Switch 2 ", "session", "Switch 2"),
        ("/review\nthese two\n\nfiles", "review", "these two\n\nfiles"),
        ("/tool shell_exec {}", "tool", "shell_exec {}"),
        ("/评审 它", "评审", "它"),
    ],
)
def test_a_slash_word_is_a_name_and_what_follows_it(halo_home, text, name, args):
    words = read_command(text, halo_home)
    assert (words.name, words.args, words.text) == (name, args, text)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("/s", "/session"), ("/a", "/agent"), ("/h", "/help"), ("/w", "/workspace"), ("/sn", "/session new"),
        ("/sl", "/session list"), ("/si", "/session info"), ("/ss 2", "/session switch 2"),
        ("/ws /tmp/x y", "/workspace switch /tmp/x y"), ("/wi", "/workspace info"),
        ("/as writer", "/agent switch writer"), ("/al", "/agent list"), ("/s sw 2", "/session switch 2"),
        ("/session LS", "/session list"), ("/s i", "/session info"), ("/s n", "/session new"),
        ("/s ctx", "/session context"), ("/s st", "/session stop"), ("/s int", "/session interrupt"),
        ("/a ls", "/agent list"), ("/a create a  b\nc", "/agent create a  b\nc"),
    ],
)  # fmt: skip
def test_every_short_form_that_comes_with_halo(seeded, typed, meant):
    words = read_command(typed, seeded)
    assert f"/{words.name} {words.args}".strip() == meant
    assert words.text == meant  # what an agent gets of a verb that is a skill's


def test_every_short_form_that_comes_with_halo_means_a_command_and_a_verb_that_exist(seeded):
    aliases = load_aliases(seeded)
    assert len(aliases.top) == 12 and len(aliases.verbs) == 7 and not aliases.warnings
    for meaning in aliases.top.values():
        noun, _, verb = meaning.removeprefix("/").partition(" ")
        assert noun in BUILTIN_COMMANDS and (not verb or verb in BUILTIN_COMMANDS[noun]), meaning
    assert set(aliases.verbs.values()) <= set().union(*BUILTIN_COMMANDS.values())


def test_the_words_of_a_skill_or_an_agent_are_nobody_elses_abbreviations(seeded):
    assert read_command("/tool ls", seeded).text == "/tool ls"
    assert read_command("/think i am", seeded).args == "i am"


def test_a_change_of_the_file_counts_from_the_next_message_on(seeded):
    path = seeded.global_dir / "aliases.yaml"
    assert read_command("/sl", seeded).name == "session"
    path.write_text("top:\n  /sl: /skill list\n")
    os.utime(path, ns=(1, 1))  # as old as can be: it is the change that tells, not its age
    assert read_command("/sl", seeded).name == "skill"
    path.unlink()
    assert read_command("/sl", seeded).name == "sl"


@pytest.mark.parametrize(
    ("content", "warning"),
    [
        ("top: [", "not valid YAML"),
        ("- a\n", "key: value"),
        ("top: /s\n", "`top`"),
        ("top: {/x: }\nverb: {ls: list}\n", "'/x' needs a text"),
        ("top: {/x: [a]}\n", "'/x' needs a text"),
        ("tops: {/s: /session}\n", "'tops' is neither"),
        ("top: {/help: /session list}\n", "/help is a command of Halo's own"),
    ],
)
def test_a_faulty_file_of_aliases_is_told_and_breaks_nothing(halo_home, content, warning):
    (halo_home.global_dir / "aliases.yaml").write_text(content)
    assert any(warning in each for each in load_aliases(halo_home).warnings)
    assert read_command("/help me", halo_home).name == "help"


def test_what_is_sound_in_a_faulty_file_still_counts(halo_home):
    (halo_home.global_dir / "aliases.yaml").write_text("top: {/x: 3, /y: /session list, z: agent}\n")
    assert read_command("/y", halo_home).args == "list"
    assert read_command("/z", halo_home).name == "agent"


def test_an_alias_of_an_alias_is_not_followed(halo_home):
    (halo_home.global_dir / "aliases.yaml").write_text("top: {/x: /y, /y: /x}\n")
    assert read_command("/x", halo_home).name == "y"
