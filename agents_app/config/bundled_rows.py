"""Copies the provider rows that come with Halo to `HALO_HOME/global/models`, where people can read them.

They are the platform's own: a copy that differs is written anew at every start, unless a newer Halo left it. Rows of
one's own belong into `models.d`.
"""

import logging
from pathlib import Path

from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.files import BUNDLED
from agents_app.config.registry_row import parse_provider
from agents_app.config.yaml_file import parse_mapping
from halo_project.layout import HomeLayout
from sessions_app.log.atomic import replace_file
from sessions_app.log.regular import read_regular

logger = logging.getLogger(__name__)


def refresh_bundled_rows(home: HomeLayout) -> list[str]:
    """The ids of the rows that were written. A home that cannot be written to is no fault: the registry reads the
    bundled rows themselves, too."""
    written = []
    for source in sorted((BUNDLED / "models").glob("*.yaml")):
        copy, data = home.global_models / source.name, source.read_bytes()
        try:
            if _is_in_order(copy, source, data):
                continue
            replace_file(copy, [data])
        except OSError as error:
            logger.warning("%s is not brought up to date: %s", copy, error)
            continue
        written.append(source.stem)
    return written


def _is_in_order(copy: Path, source: Path, data: bytes) -> bool:
    try:
        there = read_regular(copy)
    except FileNotFoundError:
        return False
    if there == data:
        return True
    try:
        return _revision(copy, there) > _revision(source, data)
    except ConfigFileInvalid:
        return False


def _revision(path: Path, data: bytes) -> int:
    return parse_provider(path, parse_mapping(path, data)).revision
