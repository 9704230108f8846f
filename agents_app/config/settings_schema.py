"""Which settings there are: the server's own, the providers', the skills' and the agents'.

Each owner declares its own beside it; a declaration that does not hold is left out and its problem kept. Values are
left to `settings_view` and `general`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from agents_app.config.agents import list_agents
from agents_app.config.declarations import Declarations, read_declarations
from agents_app.config.endpoints import RULE
from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.general_fields import GENERAL_FIELDS
from agents_app.config.params import Owner
from agents_app.config.registry import Provider, Registry, load_registry
from agents_app.config.setting_field import SettingField
from agents_app.config.settings_file import REFUSED_SEGMENTS
from agents_app.config.skills import list_skills
from halo_project.layout import HomeLayout

OwnerKind = Literal["general", "provider", "skill", "agent"]
GENERAL, MODELS = "general", "models"


@dataclass(frozen=True, slots=True)
class Section:
    """The settings of one owner. `namespace`: its id, by which its values are found in the files.

    params_owner: the skill or agent itself, as the owner of its params.
    """

    namespace: str
    owner: OwnerKind
    display_name: str
    fields: tuple[SettingField, ...]
    display_name_zh: str = ""
    description: str = ""
    description_zh: str = ""
    params_owner: Owner | None = None


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

    def suggestion(self, name: str) -> str | None:
        """The declared name that was probably meant."""
        first = name.partition(".")[0]
        near = [known for known in self.by_name if known.startswith(f"{first}.")]
        return next(iter(get_close_matches(name, near, 1, 0.75)), None)

    def owner_at(self, path: tuple[str, ...]) -> Owner | None:
        """The skill or agent that declares a param at this path."""
        field = self.at(path)
        found = (each.params_owner for each in self.sections if field is not None and field in each.fields)
        return next(found, None) if field is not None and field.kind == "param" else None


def load_schema(home: HomeLayout, workspace: Path | None = None) -> Schema:
    """Everything that is declared now. Without a workspace: what the installation itself has."""
    problems: list[str] = []
    registry = load_registry(home)
    own = tuple(_with_providers(each, registry) for each in GENERAL_FIELDS)
    sections = [Section(GENERAL, "general", "General", own, display_name_zh="常规")]
    problems += registry.problems.values()
    sections += [_provider(row) for row in sorted(registry.providers.values(), key=lambda row: row.id)]
    taken = {GENERAL, MODELS, *REFUSED_SEGMENTS}
    for sections_of in (_skills, _agents):
        for section in _sound(sections_of, home, workspace, problems):
            if section.namespace in taken:
                named = f"The {section.owner} '{section.namespace}'"
                problems.append(f"{named} needs another id to have settings of its own.")
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


_SectionsOf = Callable[[HomeLayout, Path | None, list[str]], Iterator[Section]]


def _sound(sections_of: _SectionsOf, home: HomeLayout, workspace: Path | None, problems: list[str]) -> list[Section]:
    """Those of them that declare something, by id; none where their folder cannot be read."""
    try:
        found = [section for section in sections_of(home, workspace, problems) if section.fields]
    except ConfigFileInvalid as error:
        problems.append(error.message)
        return []
    return sorted(found, key=lambda section: section.namespace)


def _skills(home: HomeLayout, workspace: Path | None, problems: list[str]) -> Iterator[Section]:
    for listing in list_skills(workspace, home):
        if listing.skill is None:
            problems.append(listing.error or "")
        else:
            yield _section("skill", listing.name, listing.skill.owner, listing.skill.declared)


def _agents(home: HomeLayout, workspace: Path | None, problems: list[str]) -> Iterator[Section]:
    for listing in list_agents(workspace, home):
        if listing.folder is None:
            continue
        try:
            declared = read_declarations(listing.folder / "agent-config.yaml")
        except ConfigFileInvalid as error:
            problems.append(error.message)
            continue
        problems += [f"The agent '{listing.agent_id}': {sentence}" for sentence in declared.warnings]
        owner = Owner(listing.agent_id, listing.scope, declared.params, is_agent=True)
        yield _section("agent", listing.name, owner, declared)


def _section(kind: OwnerKind, display_name: str, owner: Owner, declared: Declarations) -> Section:
    return Section(
        owner.owner_id,
        kind,
        display_name,
        (*declared.params, *declared.secrets),
        display_name_zh=declared.display_name_zh,
        description=declared.description,
        description_zh=declared.description_zh,
        params_owner=owner,
    )
