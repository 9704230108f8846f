"""Warnings about configuration files in the log: once, and again when they change."""

import logging
from collections.abc import Sequence

MAX_SUBJECTS = 1024

_logged: dict[str, tuple[str, ...]] = {}


def log_once(logger: logging.Logger, subject: str, sentence: str) -> None:
    """Log the sentence if it was not logged before."""
    key = f"{subject}: {sentence}"
    if key not in _logged:
        _remember(key, ())
        logger.warning("%s", key)


def log_changes(logger: logging.Logger, subject: str, sentences: Sequence[str]) -> None:
    """Log the sentences about this subject that were not among those of the last time."""
    before, now = _logged.get(subject, ()), tuple(sentences)
    if before == now:
        return
    _remember(subject, now)
    for sentence in now:
        if sentence not in before:
            logger.warning("%s: %s", subject, sentence)


def _remember(subject: str, sentences: tuple[str, ...]) -> None:
    if len(_logged) >= MAX_SUBJECTS:
        _logged.clear()
    _logged[subject] = sentences
