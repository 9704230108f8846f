"""The environment: the only module that reads `os.environ`. Everything else gets a checked, frozen `HaloEnv`.

What a value means is decided here once; folders below `HALO_HOME` are laid out by `halo_project.layout`. An empty
variable counts as unset. A value we cannot use is a ConfigurationError whose one line names the variable.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from halo_project.errors import ConfigurationError

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_REDIS_SCHEMES = ("redis", "rediss", "unix")
_DATABASE_SCHEMES = ("postgres", "postgresql", "sqlite")


@dataclass(frozen=True, slots=True)
class HaloEnv:
    """The settings of one installation. Durations are seconds; `time_scale` multiplies every constant of `Timing`."""

    home: Path
    workspace: Path
    host: str = "127.0.0.1"
    port: int = 9527
    password: str | None = field(default=None, repr=False)
    redis_url: str | None = field(default=None, repr=False)
    database_url: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    shell_timeout_s: float = 120.0
    web_fetch_timeout_s: float = 10.0
    model_timeout_s: float = 1800.0
    log_level: str = "INFO"
    badge: str | None = None
    time_scale: float = 1.0
    timezone: str | None = None
    cron_test_interval_s: float | None = None
    worker_processes: int = 2
    turn_slots: int = 32
    _source: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def lookup(self, name: str) -> str | None:
        """The value of any variable, for `<<NAME>>` in settings files; None when unset or empty."""
        return self._source.get(name) or None


def read_env(environ: Mapping[str, str] | None = None) -> HaloEnv:
    """The checked environment (of this process when none is given). Raises ConfigurationError."""
    read = _Reader(os.environ if environ is None else environ)
    home = read.path("HALO_HOME") or _default_home(read)
    return HaloEnv(
        home=home,
        workspace=read.path("HALO_WORKSPACE") or home / "workspace",
        host=read.host("HALO_HOST", "127.0.0.1"),
        port=read.whole("HALO_PORT", 9527, 1, 65535),
        password=read.text("HALO_PASSWORD"),
        redis_url=read.url("HALO_REDIS_URL", _REDIS_SCHEMES),
        database_url=read.url("HALO_DATABASE_URL", _DATABASE_SCHEMES),
        allowed_hosts=read.names("HALO_ALLOWED_HOSTS"),
        cors_origins=read.origins("HALO_CORS_ORIGINS"),
        shell_timeout_s=read.number("HALO_SHELL_TIMEOUT", 120, 86400),
        web_fetch_timeout_s=read.number("HALO_WEB_FETCH_TIMEOUT", 10, 3600),
        model_timeout_s=read.number("HALO_MODEL_TIMEOUT", 1800, 86400),
        log_level=read.log_level("HALO_LOG_LEVEL", "INFO"),
        badge=read.text("HALO_BADGE"),
        time_scale=read.number("HALO_TIME_SCALE", 1, 1000),
        timezone=read.zone("HALO_TIMEZONE"),
        cron_test_interval_s=read.optional_number("HALO_CRON_TEST_INTERVAL", 3600),
        worker_processes=read.whole("HALO_WORKERS", 2, 1, 64),
        turn_slots=read.whole("HALO_TURN_SLOTS", 32, 1, 10000),
        _source=dict(read.environ),
    )


def child_environment(**changes: str) -> dict[str, str]:
    """A copy of this process's environment with `changes` applied, for a process we start."""
    return {**os.environ, **changes}


def _default_home(read: "_Reader") -> Path:
    try:
        return Path.home() / ".halo"
    except RuntimeError:
        raise ConfigurationError("This user has no home folder: set HALO_HOME to a folder of Halo's own.") from None


class _Reader:
    """One method per kind of value. Each raises ConfigurationError naming the variable, never showing a secret."""

    def __init__(self, environ: Mapping[str, str]):
        self.environ = environ

    def text(self, name: str) -> str | None:
        return self.environ.get(name) or None

    def path(self, name: str) -> Path | None:
        value = self.text(name)
        if value is None:
            return None
        if "\0" in value:
            raise ConfigurationError(f"{name} is not a path.")
        try:
            return Path(os.path.abspath(Path(value).expanduser()))
        except RuntimeError:
            raise ConfigurationError(f"{name} names a user that does not exist: {value}") from None

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        value = (self.text(name) or "").strip() or str(default)
        if re.fullmatch(r"\d{1,9}", value, re.ASCII) and low <= int(value) <= high:
            return int(value)
        raise ConfigurationError(f"{name} must be a whole number from {low} to {high}, not {value[:40]!r}.")

    def number(self, name: str, default: float, high: float) -> float:
        value = (self.text(name) or "").strip() or str(default)
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?|\.\d{1,9}", value, re.ASCII) and 0 < float(value) <= high:
            return float(value)
        raise ConfigurationError(f"{name} must be a number above 0 and up to {high:g}, not {value[:40]!r}.")

    def optional_number(self, name: str, high: float) -> float | None:
        return None if self.text(name) is None else self.number(name, high, high)

    def zone(self, name: str) -> str | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            return ZoneInfo(value.strip()).key
        except (OSError, ValueError, LookupError):
            raise ConfigurationError(f"{name} must be a time zone like Europe/Paris, not {value[:40]!r}.") from None

    def host(self, name: str, default: str) -> str:
        value = (self.text(name) or default).strip().strip("[]")
        if re.fullmatch(r"[A-Za-z0-9_.:%-]+", value, re.ASCII):
            return value
        raise ConfigurationError(f"{name} must be one address or host name to listen on, not {value[:40]!r}.")

    def names(self, name: str) -> tuple[str, ...]:
        values = _listed(self.text(name))
        for value in values:
            if not re.fullmatch(r"\*|\.?[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]", value, re.ASCII):
                raise ConfigurationError(
                    f"{name} must be host names separated by commas (no scheme, no port), not {value[:60]!r}."
                )
        return values

    def origins(self, name: str) -> tuple[str, ...]:
        values = _listed(self.text(name))
        for value in values:
            if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9_.\-\[\]:]+", value, re.ASCII):
                raise ConfigurationError(
                    f"{name} must be origins like https://chat.example.org separated by commas, not {value[:60]!r}."
                )
        return values

    def url(self, name: str, schemes: tuple[str, ...]) -> str | None:
        value = self.text(name)
        if value is None:
            return None
        try:  # the value may hold a password, so it is never repeated in the message
            parts = urlsplit(value.strip())
            valid = parts.scheme in schemes and bool(parts.hostname or parts.path.strip("/")) and (parts.port or 1) > 0
        except ValueError:
            valid = False
        if not valid:
            beginnings = " or ".join(f"{scheme}://" for scheme in schemes)
            raise ConfigurationError(f"{name} must be a URL that begins with {beginnings}.")
        return value.strip()

    def log_level(self, name: str, default: str) -> str:
        value = (self.text(name) or default).strip().upper()
        value = {"WARN": "WARNING", "FATAL": "CRITICAL"}.get(value, value)
        if value not in LOG_LEVELS:
            raise ConfigurationError(f"{name} must be one of {', '.join(LOG_LEVELS)}, not {value[:40]!r}.")
        return value


def _listed(value: str | None) -> tuple[str, ...]:
    return tuple(part for part in (piece.strip() for piece in (value or "").split(",")) if part)
