"""`<id>.params.<key>`: what a skill or an agent declares, and which of its values may go where.

The conversation is no place for a secret, and a workspace may come from anyone. So there are two questions, each with
its function: what may stand in a text (`text_value`), and what may be put into a command as it starts
(`command_value`). docs/skills.md has the rules in words. How placeholders are written is left to `placeholders`.
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from agents_app.config import settings_words
from agents_app.config.agent_yaml import AgentConfig, Scope
from agents_app.config.declarations import read_declarations
from agents_app.config.env_references import env_names
from agents_app.config.files import BUNDLED
from agents_app.config.setting_field import SettingField, as_text, scalar_text
from agents_app.config.settings_file import Settings, Source, value_at
from agents_app.tools.environment import is_secret
from halo_project.layout import HomeLayout, WorkspaceLayout

# What a workspace's value may be made of where it goes into a command line unseen.
_HARMLESS = re.compile(r"[\w.,:/@%+=-]+\Z")
RESERVED_IDS = frozenset({"general", "models"})  # what stands below these in a settings file is Halo's own


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose params they are. fields: what it declares. installed: what the installation's namesake declares, when this
    one is a workspace's. is_agent: agents need not declare what is no secret."""

    owner_id: str
    scope: Scope
    fields: tuple[SettingField, ...] = ()
    installed: tuple[SettingField, ...] = ()
    is_agent: bool = False

    @property
    def kind(self) -> str:
        return "agent" if self.is_agent else "skill"

    def field(self, key: str) -> SettingField | None:
        return next((field for field in self.fields if field.key == key), None)

    def declares_secret(self, key: str) -> bool:
        return any(field.secret for field in (*self.fields, *self.installed) if field.key == key)

    def is_secret(self, key: str) -> bool:
        """What a skill uses without declaring it is taken for a secret."""
        declared = any(field.key == key for field in (*self.fields, *self.installed))
        return self.declares_secret(key) or (not declared and not self.is_agent)


@dataclass(frozen=True, slots=True)
class Value:
    """text None: there is none for this place, and `reason` says why, in words for the model."""

    text: str | None = field(repr=False)
    reason: str = ""
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """The value that holds for a param, as it is written; None where there is none.

    source: whose file it stands in; a default counts as its declarer's. passed_over: why another value, which one of
    the files has, does not hold, and what to do about it; no full stop.
    """

    written: str | None = field(repr=False)
    source: Source
    is_default: bool = False
    passed_over: str = ""


def agent_owner(agent: AgentConfig, workspace: Path, home: HomeLayout) -> Owner:
    """The agent as the owner of its params; its agent-config.yaml may declare some. Raises ConfigFileInvalid."""
    places = {"workspace": WorkspaceLayout(workspace).agents, "global": home.global_agents}
    folder = places.get(agent.scope, BUNDLED / "agents") / agent.agent_id
    declared = read_declarations(folder / "agent-config.yaml").params
    return Owner(agent.agent_id, agent.scope, declared, is_agent=True)


def text_value(owner: Owner, key: str, settings: Settings) -> str | None:
    """What a prompt or a skill's text shows for it; None for a secret, and where there is no value."""
    found = held(owner, key, settings)
    if found.written is None or owner.is_secret(key) or _names_secret(found.written):
        return None
    return settings.resolve(found.written, found.source)


def command_value(owner: Owner, key: str, settings: Settings, *, workspace_agent: bool) -> Value:
    """What is put into a command that is about to run."""
    found = held(owner, key, settings)
    if found.written is None:
        unset = f"`{owner.owner_id}.params.{key}` is not set in the settings"
        return Value(None, found.passed_over or unset)
    secret = owner.is_secret(key) or _names_secret(found.written)
    if found.source == "global" and workspace_agent and secret:
        place = settings_words.agents_place(settings)
        reason = "an agent that lies in the workspace is not given the installation's secrets"
        return Value(None, f"{reason}; in {place} it gets them")
    value = settings.resolve(found.written, found.source)
    missing = next((variable for variable in env_names(found.written) if f"<<{variable}>>" in value), None)
    if missing is not None:
        return Value(None, _why_missing(missing, owner, found, settings))
    if found.source == "workspace" and not _HARMLESS.match(value):
        return Value(None, "the workspace's value holds characters that mean something to a shell")
    return Value(value, is_secret=secret)


def held(owner: Owner, key: str, settings: Settings) -> Held:
    """Which of the two files' values holds for it, or its default, and why another one does not."""
    own: Source = "workspace" if owner.scope == "workspace" else "global"
    if owner.owner_id in RESERVED_IDS:
        return Held(None, own)
    path = _path(owner, key)
    passed_over = _named_variable(owner, path, settings)
    kept_out = override_refusal(owner, key, settings) if own == "global" else ""
    if kept_out:
        if settings.source(*path) == "workspace":
            passed_over = passed_over or kept_out
        settings = _installation_alone(settings)
    value, source = scalar_text(settings.written(*path)), settings.source(*path) or own
    if value and own == "workspace" and source == "global" and not _plain_there(owner, key):
        value, passed_over = None, settings_words.not_for_workspaces(owner.is_agent, settings)
    if value:
        return Held(value, source, passed_over=passed_over)
    if value is None and settings.written(*path) is not None:
        passed_over = passed_over or settings_words.NO_SCALAR
    field = owner.field(key)
    default = None if field is None or field.default is None else as_text(field.default)
    return Held(default, own, is_default=True, passed_over=passed_over)


def override_refusal(owner: Owner, key: str, settings: Settings) -> str:
    """Why a workspace's settings do not count for this param of what the installation owns; empty where they do.

    Where the installation's key goes is not for the workspace to say: neither the address beside a secret that is the
    installation's, nor what is declared as the installation's alone, nor anything that nobody declares.
    """
    declared = owner.field(key)
    if declared is None:
        return f"what the {owner.kind} '{owner.owner_id}' does not declare, a workspace cannot set"
    if declared.global_only:
        return settings_words.GLOBAL_ONLY
    secrets = [field for field in owner.fields if field.secret]
    sources = [(field, settings.source(*_path(owner, field.key))) for field in secrets]
    if any(source == "global" or (source is None and field.default is not None) for field, source in sources):
        return settings_words.KEY_IS_THE_INSTALLATIONS
    return ""


def _named_variable(owner: Owner, path: tuple[str, ...], settings: Settings) -> str:
    """Why the workspace's value is passed over, where it names a variable that it may not."""
    name = settings.guarded_name(value_at(settings.over or {}, path))
    return "" if name is None else settings_words.guarded(name, owner.scope, owner.is_agent, settings)


def _why_missing(variable: str, owner: Owner, found: Held, settings: Settings) -> str:
    if found.source == "global" or settings.guarded_name(found.written) != variable:
        return f"the environment variable {variable} is not set; set it and start Halo again"
    return found.passed_over or settings_words.guarded_default(variable, owner.is_agent, settings)


def _installation_alone(settings: Settings) -> Settings:
    return settings if settings.base is None else replace(settings, values=settings.base)


def _plain_there(owner: Owner, key: str) -> bool:
    return any(field.key == key for field in owner.installed) and not owner.is_secret(key)


def _path(owner: Owner, key: str) -> tuple[str, ...]:
    return (owner.owner_id, "params", *key.split("."))


def _names_secret(written: str) -> bool:
    return any(is_secret(name) for name in env_names(written))
