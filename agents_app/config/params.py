"""`<id>.params.<key>`: what a skill or an agent declares, and which of its values may go where.

The conversation is no place for a secret, and a workspace may come from anyone. So there are two questions, each with
its function: what may stand in a text (`text_value`), and what may be put into a command as it starts
(`command_value`). docs/skills.md has the rules in words. How placeholders are written is left to `placeholders`.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from agents_app.config.agent_yaml import AgentConfig, Scope
from agents_app.config.declarations import read_declarations
from agents_app.config.env_references import env_names
from agents_app.config.files import BUNDLED
from agents_app.config.setting_field import SettingField, as_text, scalar_text
from agents_app.config.settings_file import Settings, Source
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

    text: str | None
    reason: str = ""


def agent_owner(agent: AgentConfig, workspace: Path, home: HomeLayout) -> Owner:
    """The agent as the owner of its params; its agent-config.yaml may declare some. Raises ConfigFileInvalid."""
    places = {"workspace": WorkspaceLayout(workspace).agents, "global": home.global_agents}
    folder = places.get(agent.scope, BUNDLED / "agents") / agent.agent_id
    declared = read_declarations(folder / "agent-config.yaml").params
    return Owner(agent.agent_id, agent.scope, declared, is_agent=True)


def text_value(owner: Owner, key: str, settings: Settings) -> str | None:
    """What a prompt or a skill's text shows for it; None for a secret, and where there is no value."""
    written, source = _written(owner, key, settings)
    if written is None or owner.is_secret(key) or _names_secret(written):
        return None
    return settings.resolve(written, source)


def command_value(owner: Owner, key: str, settings: Settings, *, workspace_agent: bool) -> Value:
    """What is put into a command that is about to run."""
    name = f"{owner.owner_id}.params.{key}"
    written, source = _written(owner, key, settings)
    if written is None:
        return Value(None, _why_none(owner, key, settings, name))
    if source == "global" and workspace_agent and (owner.is_secret(key) or _names_secret(written)):
        return Value(None, "an agent that lies in the workspace is not given the installation's secrets")
    value = settings.resolve(written, source)
    missing = [variable for variable in env_names(written) if f"<<{variable}>>" in value]
    if missing:
        return Value(None, f"the environment variable {missing[0]} is not set, or not for a workspace's file to name")
    if source == "workspace" and not _HARMLESS.match(value):
        return Value(None, "the workspace's value holds characters that mean something to a shell")
    return Value(value)


def _why_none(owner: Owner, key: str, settings: Settings, name: str) -> str:
    if owner.scope == "workspace" and settings.written(*_path(owner, key)) is not None:
        return "a skill or agent that lies in the workspace is not given the installation's values"
    return f"`{name}` is not set in the settings"


def _written(owner: Owner, key: str, settings: Settings) -> tuple[str | None, Source]:
    """The value as its file has it, and in whose file; the default counts as its declarer's."""
    own: Source = "workspace" if owner.scope == "workspace" else "global"
    if owner.owner_id in RESERVED_IDS:
        return None, own
    if own == "global" and not _may_be_overridden(owner, key, settings):
        settings = _installation_alone(settings)
    path = _path(owner, key)
    value, source = scalar_text(settings.written(*path)), settings.source(*path) or own
    if value is not None and own == "workspace" and source == "global" and not _plain_there(owner, key):
        value = None
    if value is not None:
        return value, source
    field = owner.field(key)
    return (as_text(field.default), own) if field is not None and field.default is not None else (None, own)


def _may_be_overridden(owner: Owner, key: str, settings: Settings) -> bool:
    """Whether a workspace's settings count for what the installation owns.

    Where the installation's key goes is not for the workspace to say: neither the address beside a secret that is the
    installation's, nor what is declared as the installation's alone, nor anything that nobody declares.
    """
    declared = owner.field(key)
    if declared is None or declared.global_only:
        return False
    secrets = [field for field in owner.fields if field.secret]
    sources = [(field, settings.source(*_path(owner, field.key))) for field in secrets]
    return not any(source == "global" or (source is None and field.default is not None) for field, source in sources)


def _installation_alone(settings: Settings) -> Settings:
    return settings if settings.base is None else replace(settings, values=settings.base)


def _plain_there(owner: Owner, key: str) -> bool:
    return any(field.key == key for field in owner.installed) and not owner.is_secret(key)


def _path(owner: Owner, key: str) -> tuple[str, ...]:
    return (owner.owner_id, "params", *key.split("."))


def _names_secret(written: str) -> bool:
    return any(is_secret(name) for name in env_names(written))
