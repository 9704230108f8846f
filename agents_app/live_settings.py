"""The server's own settings as they are right now, for those who act by them; a change counts without a restart.

A file that cannot be read says so where keys and models are looked up; here it stops nothing: what the other file says
holds, at last the defaults. Reading them also brings the process's log level up to date.
"""

import logging
from pathlib import Path

from django.conf import settings

from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.general import DEFAULTS, General, load_general
from agents_app.config.notices import log_once
from halo_project.log_format import logging_config

logger = logging.getLogger(__name__)

_LEVELS = {"debug": "DEBUG", "info": "INFO", "warn": "WARNING", "error": "ERROR"}


def installation() -> General:
    """What holds for no workspace in particular."""
    try:
        general = load_general(settings.HALO_HOME, settings.HALO.lookup)
    except ConfigFileInvalid as error:
        log_once(logger, "settings are not read", error.message)
        return DEFAULTS
    _apply_log_level(general)
    return general


def of_workspace(path: Path | str) -> General:
    """What holds in the workspace at this absolute path."""
    try:
        general = load_general(settings.HALO_HOME, settings.HALO.lookup, Path(path))
    except ConfigFileInvalid as error:
        log_once(logger, "settings are not read", error.message)
        return installation()
    _apply_log_level(general)
    return general


def at_start() -> None:
    """The log level of a process that begins. A file that cannot be read is told of by whoever needs it."""
    try:
        _apply_log_level(load_general(settings.HALO_HOME, settings.HALO.lookup))
    except ConfigFileInvalid:
        return


def _apply_log_level(general: General) -> None:
    """As `settings.LOGGING` would have it; handlers stay as they are."""
    global _applied
    level = _LEVELS.get(general.logging.level or "", settings.HALO.log_level)
    if level == (_applied or settings.HALO.log_level):
        return
    config = logging_config(level)
    logging.getLogger().setLevel(config["root"]["level"])
    for name, rules in config["loggers"].items():
        logging.getLogger(name).setLevel(rules["level"])
    _applied = level


_applied: str | None = None  # what this process was last set to; None: as it was started
