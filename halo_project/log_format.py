"""How log lines look and where they go: to stderr, one line each, times in UTC."""

import logging
import time
from typing import Any


class UtcFormatter(logging.Formatter):
    """`2026-09-12T15:17:44Z INFO agents_app.runner: text`"""

    converter = time.gmtime

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")


def logging_config(level: str) -> dict[str, Any]:
    """A `dictConfig` for the given level. Libraries that log each request (the SDKs with all of its
    words) or retry are heard from WARNING on."""
    quiet = {"level": "WARNING" if level in ("DEBUG", "INFO") else level}
    chatty = (
        "anthropic",
        "openai",
        "httpx",
        "httpx2",
        "httpcore",
        "daphne",
        "twisted",
        "asyncio",
        "botocore",
        "urllib3",
        "kombu",
        "amqp",
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": "halo_project.log_format.UtcFormatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": dict.fromkeys(chatty, quiet) | {"django": {"level": level, "propagate": True}},
    }
