"""The server's own settings, typed: layers, and values that do not fit."""

import logging
import os
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from agents_app.config import notices
from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.general import DEFAULTS, General, load_general
from agents_app.config.general_fields import GENERAL_FIELDS, GLOBAL_ONLY
from agents_app.config.settings_file import load_settings
from agents_app.engine.compactor import CompactionRules
from agents_app.engine.retry import RetryPolicy
from agents_app.tools.base import ToolLimits
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import NO_ENV, write, write_yaml


def general(home: HomeLayout, workspace: Path | None = None, env: Any = NO_ENV) -> General:
    return load_general(home, env, workspace)


def write_general(home: HomeLayout, **values: Any) -> None:
    write_yaml(home.settings_yaml, {"general": values})


def write_workspace(workspace: Path, **values: Any) -> None:
    write_yaml(WorkspaceLayout(workspace).settings_yaml, {"general": values})


def test_without_files_the_defaults_hold(halo_home: HomeLayout, workspace: Path) -> None:
    assert general(halo_home) == general(halo_home, workspace) == DEFAULTS
    assert (DEFAULTS.session.max_queue_size, DEFAULTS.session.max_nesting_depth) == (256, 16)
    assert (DEFAULTS.compact.compress_at, DEFAULTS.limits.auto_report_chars) == (0.8, 8192)
    assert DEFAULTS.sandbox.network is True and DEFAULTS.web_fetch.allow_private is False
    assert DEFAULTS.agent.trusted_endpoints == () and DEFAULTS.server.trust_proxy is False


def test_the_engine_has_the_same_defaults() -> None:
    limits, rules = ToolLimits(), CompactionRules()
    assert (limits.shell_output_bytes, limits.web_fetch_bytes, limits.grep_default_matches) == (
        DEFAULTS.limits.shell_output_bytes,
        DEFAULTS.limits.web_fetch_bytes,
        DEFAULTS.limits.grep_default_matches,
    )
    assert limits.model_chars == DEFAULTS.limits.tool_result_render_chars
    assert limits.ui_chars == DEFAULTS.limits.tool_result_ui_chars
    assert (rules.keep, rules.summary_chars, rules.message_chars, rules.timeout_s) == (
        DEFAULTS.compact.keep_messages,
        DEFAULTS.compact.max_summary_input,
        DEFAULTS.compact.max_message_slice,
        DEFAULTS.compact.summarize_timeout_sec,
    )
    assert RetryPolicy().attempts == DEFAULTS.agent.max_retries


def test_every_field_is_an_attribute_and_every_attribute_a_field() -> None:
    attributes = set()
    for part in fields(General):
        value = getattr(DEFAULTS, part.name)
        inner = [f"{part.name}.{each.name}" for each in fields(value)] if is_dataclass(value) else [part.name]
        attributes.update(inner)
    declared = {field.key.replace(".triggers.", ".triggers_") for field in GENERAL_FIELDS}
    assert attributes - {"problems"} == declared


def test_the_workspace_over_the_installation_leaf_by_leaf(halo_home: HomeLayout, workspace: Path) -> None:
    write_general(halo_home, session={"max_queue_size": 10, "max_nesting_depth": 5}, agent={"max_retries": 2})
    write_workspace(workspace, session={"max_queue_size": 20})
    found = general(halo_home, workspace)
    assert (found.session.max_queue_size, found.session.max_nesting_depth, found.agent.max_retries) == (20, 5, 2)
    assert general(halo_home).session.max_queue_size == 10


def test_a_workspace_moves_nothing_that_guards_the_machine(halo_home: HomeLayout, workspace: Path) -> None:
    bad = {
        "limits": {"shell_output_bytes": 60_000_000},
        "server": {"trust_proxy": True},
        "sandbox": {"network": False, "writable_dirs": ["/"]},
        "web_fetch": {"allow_private": True},
        "webhook": {"addresses": ["https://elsewhere/"]},
        "agent": {"trusted_endpoints": ["https://elsewhere"], "workspace_variables": ["X"], "max_retries": 7},
        "logging": {"level": "debug"},
        "language": "zh-CN",
        "evolution": {"level": "L1"},
    }
    write_workspace(workspace, **bad)
    found = general(halo_home, workspace)
    assert found.agent.max_retries == 7
    ignored = load_settings(halo_home, NO_ENV, workspace).ignored
    assert set(ignored) == {".".join(path) for path in GLOBAL_ONLY}
    write_workspace(workspace, agent={"max_retries": 7})
    assert general(halo_home, workspace) == found


@pytest.mark.parametrize(
    ("block", "name", "written", "value"),
    [
        ("session", "max_queue_size", "12", 12),
        ("session", "max_queue_size", " 12 ", 12),
        ("session", "max_queue_size", "<<SIZE>>", 33),
        ("compact", "compress_at", 1, 1),
        ("compact", "compress_at", "0.5", 0.5),
        ("server", "trust_proxy", "true", True),
        ("sandbox", "hidden_dirs", "~/.a, ~/b,,", ("~/.a", "~/b")),
        ("sandbox", "hidden_dirs", ["~/.a", " "], ("~/.a",)),
        ("agent", "trusted_endpoints", ["https://a"], ("https://a",)),
        ("session", "max_queue_size", "", 256),
    ],
)
def test_ways_to_write_a_value(block: str, name: str, written: Any, value: Any, halo_home: HomeLayout) -> None:
    write_general(halo_home, **{block: {name: written}})
    found = general(halo_home, env={"SIZE": "33"}.get)
    assert getattr(getattr(found, block), name) == value
    assert found.problems == ()


@pytest.mark.parametrize(
    ("block", "name", "written", "sentence"),
    [
        ("session", "max_nesting_depth", 0, "must be a whole number from 1 to 32"),
        ("session", "max_nesting_depth", 10**12, "must be a whole number from 1 to 32"),
        ("session", "max_nesting_depth", "many", "must be a whole number"),
        ("session", "max_nesting_depth", 4.5, "must be a whole number"),
        ("session", "max_nesting_depth", True, "must be a whole number"),
        ("session", "max_nesting_depth", [4], "must be a whole number"),
        ("session", "max_nesting_depth", {"a": 1}, "must be a whole number"),
        ("session", "max_nesting_depth", "<<UNSET>>", "refers to the environment variable UNSET, which is not set"),
        ("compact", "compress_at", float("nan"), "must be a number from 0.1 to 1"),
        ("server", "trust_proxy", "perhaps", "must be true or false"),
        ("logging", "level", "loud", "must be one of debug, info, warn, error"),
        ("sandbox", "hidden_dirs", [1], "must be a list of texts"),
    ],
)
def test_what_does_not_fit_is_passed_over_and_told(block, name, written, sentence, halo_home, caplog) -> None:
    notices._logged.clear()
    write_general(halo_home, **{block: {name: written}})
    with caplog.at_level(logging.WARNING):
        found = general(halo_home)
        write_general(halo_home, other=1, **{block: {name: written}})
        assert general(halo_home) == found
    assert getattr(getattr(found, block), name) == getattr(getattr(DEFAULTS, block), name)
    assert len(found.problems) == 1 and f"`general.{block}.{name}` {sentence}" in found.problems[0]
    assert [record.getMessage() for record in caplog.records] == [f"settings: {found.problems[0]}"]


@pytest.mark.parametrize(
    ("name", "written", "holds", "sentence"),
    [
        ("hidden_dirs", ["/srv/clients", 2024], ("/srv/clients",), "must be a list of texts"),
        ("hidden_dirs", ["/srv/clients", ["/a"], "~/b"], ("/srv/clients", "~/b"), "must be a list of texts"),
        ("hidden_dirs", ["/srv", "clients", "$HOME/x"], ("/srv",), "number 2 is neither an absolute path nor"),
        ("hidden_files", "~/a, b", ("~/a",), "number 2 is neither"),
        ("writable_dirs", ["<<UNSET>>/x", "/a"], ("/a",), "number 1 is neither"),
        ("hidden_dirs", {"a": 1}, (), "must be a list of texts"),
        ("network", "off", False, "must be true or false"),
        ("network", "<<UNSET>>", False, "UNSET, which is not set"),
        ("network", 0, False, "must be true or false"),
        ("network", [True], False, "must be true or false"),
    ],
)
def test_T6_of_the_sandbox_what_does_not_fit_never_opens_it(name, written, holds, sentence, halo_home) -> None:
    write_general(halo_home, sandbox={name: written})
    found = general(halo_home)
    assert getattr(found.sandbox, name) == holds
    assert len(found.problems) == 1 and sentence in found.problems[0]


@pytest.mark.parametrize("written", ["off", 5, ["network"], False])
def test_T6_a_single_value_in_place_of_the_sandbox_closes_the_network(written: Any, halo_home: HomeLayout) -> None:
    write_general(halo_home, sandbox=written)
    found = general(halo_home)
    assert found.sandbox.network is False and found.sandbox.writable_dirs == ()
    assert any("`general.sandbox.network` must be true or false" in each for each in found.problems)


def test_what_does_not_fit_in_a_workspace_leaves_the_installations(halo_home: HomeLayout, workspace: Path) -> None:
    write_general(halo_home, session={"max_queue_size": 10})
    write_workspace(workspace, session={"max_queue_size": -1})
    found = general(halo_home, workspace)
    assert found.session.max_queue_size == 10 and len(found.problems) == 1


def test_a_block_that_is_a_single_value(halo_home: HomeLayout) -> None:
    write_general(halo_home, session=5, compact=[1])
    assert general(halo_home) == DEFAULTS


def test_an_edit_counts_at_once_and_an_unchanged_file_costs_no_reading(halo_home: HomeLayout) -> None:
    for size in range(1, 30):
        write_general(halo_home, session={"max_queue_size": size})
        assert general(halo_home).session.max_queue_size == size
    old = halo_home.settings_yaml.stat().st_mtime - 10
    os.utime(halo_home.settings_yaml, (old, old))
    first = general(halo_home)
    assert general(halo_home) is first


def test_a_malformed_file(halo_home: HomeLayout) -> None:
    write(halo_home.settings_yaml, "general: [")
    with pytest.raises(ConfigFileInvalid):
        general(halo_home)
