"""Which settings there are: the server's own, the providers', the skills' and the agents'.

Each owner declares its own beside it; a declaration that does not hold is left out and its problem kept. Values are
left to `settings_view` and `general`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from agents_app.config.endpoints import RULE
from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.files import BUNDLED, entries, is_folder, read_text
from agents_app.config.general_fields import GENERAL_FIELDS
from agents_app.config.registry import Provider, Registry, load_registry
from agents_app.config.setting_declarations import declared_fields
from agents_app.config.setting_field import SettingField
from agents_app.config.settings_file import REFUSED_SEGMENTS
from agents_app.config.yaml_file import read_mapping
from halo_project.layout import HomeLayout, WorkspaceLayout

Owner = Literal["general", "provider", "skill", "agent"]
GENERAL, MODELS = "general", "models"


@dataclass(frozen=True, slots=True)
class Section:
    """The settings of one owner. `namespace`: its id, by which its values are found in the files."""

    namespace: str
    owner: Owner
    display_name: str
    fields: tuple[SettingField, ...]
    display_name_zh: str = ""
    description: str = ""
    description_zh: str = ""


@dataclass(frozen=True, slots=True)
class Schema:
    """All sections, and a sentence for each declaration that cannot be used."""

    sections: tuple[Section, ...]
    problems: tuple[str, ...] = ()
    by_name: dict[str, SettingField] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {name: each for each in self.fields() for name in _names(each)})

    def fields(self) -> Iterator[SettingField]:
        for section in self.sections:
            yield from section.fields

    def at(self, path: tuple[str, ...]) -> SettingField | None:
        """The field whose value stands at this path; also where files of 1.x have it."""
        found = self.by_name.get(".".join(path))
        return found if found is not None and path in (found.path, *found.older) else None


def load_schema(home: HomeLayout, workspace: Path | None = None) -> Schema:
    """Everything that is declared now. Without a workspace: what the installation itself has."""
    problems: list[str] = []
    registry = load_registry(home)
    own = tuple(_with_providers(each, registry) for each in GENERAL_FIELDS)
    sections = [Section(GENERAL, "general", "General", own, display_name_zh="常规")]
    problems += registry.problems.values()
    sections += [_provider(row) for row in sorted(registry.providers.values(), key=lambda row: row.id)]
    layout = WorkspaceLayout(workspace) if workspace is not None else None
    skills = (BUNDLED / "skills", home.global_skills, *((layout.skills,) if layout else ()))
    agents = (BUNDLED / "agents", home.global_agents, *((layout.agents,) if layout else ()))
    taken = {GENERAL, MODELS, *REFUSED_SEGMENTS}
    for owner, folders in (("skill", skills), ("agent", agents)):
        for section in _sections(owner, folders, problems):
            if section.namespace in taken:
                problems.append(f"The {owner} '{section.namespace}' needs another id to have settings of its own.")
                continue
            taken.add(section.namespace)
            sections.append(section)
    return Schema(tuple(sections), tuple(problems))


def _with_providers(each: SettingField, registry: Registry) -> SettingField:
    """The field as it is, but for the one whose choice is that of the providers there are."""
    if each.name != "general.agent.default_provider":
        return each
    return replace(each, type="enum", options=tuple(sorted(registry.providers)))


def _names(each: SettingField) -> list[str]:
    return [".".join(path) for path in (each.path, *each.older)]


def _provider(row: Provider) -> Section:
    fields = [
        SettingField(
            key=secret.key,
            path=(MODELS, row.id, "secrets", secret.key),
            older=((row.id, "secrets", secret.key),),
            kind="secret",
            default=secret.default or None,
            description=secret.description,
            description_zh=secret.description_zh,
            secret=True,
            global_only=True,
        )
        for secret in row.secrets
    ]
    model, endpoint = (MODELS, row.id, "model"), (MODELS, row.id, "endpoint")
    fields += [
        SettingField("model", model, default=row.default_model_id, description="Model for `model: auto`."),
        SettingField(
            "endpoint",
            endpoint,
            default=row.default_endpoint,
            description=f"Where requests of `model: auto` go: {RULE}.",
            global_only=True,
        ),
    ]
    name_zh = row.display_name_zh
    return Section(row.id, "provider", row.display_name, tuple(fields), name_zh, description=row.description)


def _sections(owner: Owner, folders: tuple[Path, ...], problems: list[str]) -> Iterator[Section]:
    """A nearer folder of the same id stands for the whole of the farther one."""
    found: dict[str, Path] = {}
    for folder in folders:
        try:
            found |= {path.name: path for path in entries(folder) or () if is_folder(path)}
        except ConfigFileInvalid as error:
            problems.append(error.message)
    for namespace, folder in sorted(found.items()):
        try:
            section = _section(owner, namespace, folder)
        except ConfigFileInvalid as error:
            problems.append(error.message)
            continue
        if section.fields:
            yield section


def _section(owner: Owner, namespace: str, folder: Path) -> Section:
    name = "config.yaml" if owner == "skill" else "agent-config.yaml"
    fields = declared_fields(folder, name)
    said = read_mapping(folder / name) or {}
    return Section(
        namespace,
        owner,
        _display_name(owner, folder) if fields else namespace,
        fields,
        display_name_zh=_text(said.get("displayName_zh")),
        description=_text(said.get("description")),
        description_zh=_text(said.get("description_zh")),
    )


def _display_name(owner: Owner, folder: Path) -> str:
    if owner == "agent":
        return _text((read_mapping(folder / "agent.yaml") or {}).get("name")) or folder.name
    for line in (read_text(folder / "SKILL.md") or "").split("\n")[1:20]:
        key, _, value = line.partition(":")
        if key.strip() == "name" and value.strip():
            return value.strip().strip("\"'")
    return folder.name


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
