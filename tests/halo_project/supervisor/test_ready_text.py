"""The block that `halo serve` prints."""

from pathlib import Path

import pytest

from halo_project.env import read_env
from halo_project.supervisor.ready_text import address, ready_text

WORKSPACE = Path("/h/workspace")


def env(**values: str):
    return read_env({"HALO_HOME": "/h", **values})


def test_a_new_password_is_shown_and_said_to_be_shown_once():
    text = ready_text(env(), WORKSPACE, "abcdefgh", ["Anthropic", "OpenAI"])
    assert "http://127.0.0.1:9527" in text and "abcdefgh" in text and "only this once" in text
    assert "/h/workspace" in text and "Anthropic, OpenAI" in text


def test_later_it_says_where_the_hash_is_and_how_to_set_another():
    text = ready_text(env(), WORKSPACE, None, [])
    assert "/h/secrets/password" in text and "halo password" in text
    assert "rehearsal agent" in text and "ANTHROPIC_API_KEY" in text


def test_the_environments_password_is_not_shown():
    text = ready_text(env(HALO_PASSWORD="hunter2"), WORKSPACE, None, None)
    assert "hunter2" not in text and "HALO_PASSWORD" in text


def test_a_settings_file_that_cannot_be_read_is_named_with_its_line():
    text = ready_text(env(), WORKSPACE, None, None, "/h/secrets/settings.yaml, line 3: this is not valid YAML.")
    assert "/h/secrets/settings.yaml, line 3" in text and "web.log" not in text


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", "http://127.0.0.1:9527"), ("0.0.0.0", "http://localhost:9527"), ("::1", "http://[::1]:9527")],
)
def test_the_address_is_one_that_a_browser_can_open(host, expected):
    assert address(env(HALO_HOST=host)) == expected


def test_no_line_ends_in_a_space():
    for text in (ready_text(env(), WORKSPACE, "p", []), ready_text(env(), WORKSPACE, None, ["X"])):
        assert all(line == line.rstrip() for line in text.split("\n"))
