"""The values of `general.*`, typed, as they hold for the installation or for one workspace.

Read for every round and call: an unchanged file costs one `stat`. A value that does not fit never stops anything: what
the next layer says holds instead, at last the default; of what guards the machine (`sandbox_values`) the stricter.
`problems` says so, and the log does once.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from agents_app.config.env_references import EnvLookup, env_names, resolve_env
from agents_app.config.general_fields import GENERAL_FIELDS
from agents_app.config.notices import log_once
from agents_app.config.sandbox_values import check_paths, is_guarding, meanwhile, stricter
from agents_app.config.setting_field import SettingField
from agents_app.config.settings_file import Settings, load_settings, value_at
from halo_project.layout import HomeLayout

logger = logging.getLogger(__name__)

_MOST_KEPT = 256


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """max_retries: tries of one model call. trusted_endpoints: as written. workspace_variables: names."""

    default_provider: str | None
    max_retries: int
    trusted_endpoints: tuple[str, ...]
    workspace_variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """max_queue_size: messages; max_nesting_depth: levels, the root included."""

    max_queue_size: int
    max_nesting_depth: int


@dataclass(frozen=True, slots=True)
class CompactSettings:
    """compress_at: part of the context; the next three in messages and characters; the last in seconds."""

    compress_at: float
    keep_messages: int
    max_summary_input: int
    max_message_slice: int
    summarize_timeout_sec: int


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Bounds of what tools give back; `_bytes` and `_chars` say of what, matches are counted."""

    shell_output_bytes: int
    web_fetch_bytes: int
    grep_default_matches: int
    tool_result_render_chars: int
    tool_result_ui_chars: int
    auto_report_chars: int
    terminal_scrollback_bytes: int


@dataclass(frozen=True, slots=True)
class ServerSettings:
    trust_proxy: bool


@dataclass(frozen=True, slots=True)
class LoggingSettings:
    """level: None means what the environment says."""

    level: str | None


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """Paths as they are written, `~` and all."""

    hidden_dirs: tuple[str, ...]
    hidden_files: tuple[str, ...]
    writable_dirs: tuple[str, ...]
    network: bool


@dataclass(frozen=True, slots=True)
class WebFetchSettings:
    allow_private: bool


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """addresses: as written."""

    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EvolutionSettings:
    """See the descriptions of `general.evolution.*`."""

    level: str
    max_concurrent_run: int
    max_concurrent_apply: int
    run_timeout_minutes: int
    apply_timeout_minutes: int
    max_attempts: int
    triggers_pre_compact: bool


@dataclass(frozen=True, slots=True)
class General:
    """All of `general.*`. `problems` has a sentence for each value that was passed over."""

    language: str
    agent: AgentSettings
    session: SessionSettings
    compact: CompactSettings
    limits: LimitSettings
    server: ServerSettings
    logging: LoggingSettings
    sandbox: SandboxSettings
    web_fetch: WebFetchSettings
    webhook: WebhookSettings
    evolution: EvolutionSettings
    problems: tuple[str, ...] = field(default=())


def load_general(home: HomeLayout, env_lookup: EnvLookup, workspace: Path | None = None) -> General:
    """Raises ConfigFileInvalid when a file is malformed."""
    settings = load_settings(home, env_lookup, workspace)
    known = _KNOWN.get((home, workspace))
    if known is not None and known[0] is settings:
        return known[1]
    made = general_of(settings)
    for problem in made.problems:
        log_once(logger, "settings", problem)
    if len(_KNOWN) >= _MOST_KEPT:
        _KNOWN.clear()
    _KNOWN[home, workspace] = (settings, made)
    return made


def general_of(settings: Settings) -> General:
    """The values that these settings come to."""
    values: dict[str, dict[str, object]] = {}
    problems: list[str] = []
    for each in GENERAL_FIELDS:
        block, _, name = each.key.partition(".")
        values.setdefault(block, {})[name.replace(".", "_")] = _effective(each, settings, problems.append)
    made: dict[str, object] = {}
    for part in fields(General):
        if part.name in _BLOCKS:
            made[part.name] = _BLOCKS[part.name](**values[part.name])
        elif part.name in values:
            made[part.name] = values[part.name][""]
    return General(**made, problems=tuple(dict.fromkeys(problems)))  # type: ignore[arg-type]


def _effective(each: SettingField, settings: Settings, tell: Callable[[str], None]) -> object:
    for written in _layers(each, settings):
        try:
            return read_written(each, written, settings.env_lookup)
        except ValueError as error:
            if is_guarding(each):
                tell(f"{error} {meanwhile(each)}")
                return stricter(each, written)
            tell(f"{error} What is written is not used.")
    return each.default


def read_written(each: SettingField, written: object, env_lookup: EnvLookup) -> object:
    """A value of a file in the field's type, `<<NAME>>` resolved. Raises ValueError with a sentence."""
    if isinstance(written, str) and (names := env_names(written)):
        unset = [name for name in names if env_lookup(name) is None]
        if unset:
            raise ValueError(f"`{each.name}` refers to the environment variable {unset[0]}, which is not set.")
        written = resolve_env(written, env_lookup)
    value = each.read(written)
    check_paths(each, value)
    return value


def _layers(each: SettingField, settings: Settings) -> Iterator[object]:
    """What is written, the nearest first; blank is as good as nothing. In place of a block of what guards the machine
    a single value counts for each setting in it."""
    if is_guarding(each):
        for end in range(1, len(each.path)):
            block = settings.installation(*each.path[:end])
            if block not in (None, "") and not isinstance(block, Mapping):
                yield [None]
    for written in (settings.written(*each.path), value_at(settings.base or {}, each.path)):
        if written is not None and written != "":
            yield written


_BLOCKS: dict[str, Callable[..., object]] = {
    "agent": AgentSettings,
    "session": SessionSettings,
    "compact": CompactSettings,
    "limits": LimitSettings,
    "server": ServerSettings,
    "logging": LoggingSettings,
    "sandbox": SandboxSettings,
    "web_fetch": WebFetchSettings,
    "webhook": WebhookSettings,
    "evolution": EvolutionSettings,
}
_KNOWN: dict[tuple[HomeLayout, Path | None], tuple[Settings, General]] = {}

DEFAULTS = general_of(Settings({}, lambda name: None))
