"""docs/settings.md: its table is the schema's, its examples hold, its routes exist.

`python -m tests.test_settings_doc` prints the table anew.
"""

import re
import sys
from pathlib import Path

import yaml
from django.urls import resolve

from agents_app.config.general_fields import GENERAL_FIELDS
from agents_app.config.setting_field import SettingField, as_text
from agents_app.config.settings_write import SettingsFile
from halo_project.layout import HomeLayout

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
HEAD = "| setting | value | default | workspace | |\n| --- | --- | --- | --- | --- |\n"


def row(each: SettingField) -> str:
    default = "" if each.default in (None, ()) else f"`{as_text(each.default)}`"
    return f"| `{each.name}` | {each.rule} | {default} | {'no' if each.global_only else 'yes'} | {each.description} |\n"


def table() -> str:
    return HEAD + "".join(map(row, GENERAL_FIELDS))


def test_the_table_is_the_schemas() -> None:
    assert table() in DOCUMENT.read_text(encoding="utf-8"), "python -m tests.test_settings_doc prints it anew"


def test_the_examples_may_be_written(halo_home: HomeLayout) -> None:
    blocks = re.findall(r"```yaml\n(# HALO_HOME.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        SettingsFile(halo_home, lambda name: None).replace_text(block)
        assert yaml.safe_load(halo_home.settings_yaml.read_text())


def test_the_routes_exist() -> None:
    routes = set(re.findall(r"`(?:GET|PUT|PATCH|DELETE) (/api/[a-z/]+)", DOCUMENT.read_text(encoding="utf-8")))
    assert routes == {"/api/settings", "/api/settings/schema"}
    assert all(resolve(route) for route in routes)


if __name__ == "__main__":
    sys.stdout.write(table())
