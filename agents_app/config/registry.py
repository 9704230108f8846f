"""The model registry: which providers exist, what wire each one speaks, and what their models can do.

Rows are YAML files, one for each provider: the bundled ones, `HALO_HOME/global/models/`, and installed ones in
`HALO_HOME/global/models.d/`. Of several rows with one id the highest `revision` is in effect; on a tie the later
place. A row that does not hold is left out and its problem kept for whoever asks for that provider. Keys are left to
`keys`, the choice of a model to `model_choice`; reading a row to `registry_row`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from agents_app.config.errors import ConfigFileInvalid, ProviderUnknown
from agents_app.config.files import BUNDLED, FileCache, entries
from agents_app.config.registry_row import ModelInfo, Provider, SecretField, parse_provider
from agents_app.config.yaml_file import parse_mapping
from agents_app.runtimes.quirks import PLAIN, Quirks
from halo_project.layout import HomeLayout
from halo_project.suggestions import suggestion

__all__ = ["ModelInfo", "Provider", "Registry", "SecretField", "load_registry"]


@dataclass(frozen=True, slots=True)
class Registry:
    """Usable providers by id, and for each unusable row the sentence that says why."""

    providers: Mapping[str, Provider]
    problems: Mapping[str, str] = field(default_factory=dict)

    def get(self, provider_id: str) -> Provider:
        """Raises ProviderUnknown."""
        found = self.providers.get(provider_id)
        if found is not None:
            return found
        if provider_id in self.problems:
            raise ProviderUnknown(f"The provider '{provider_id}' cannot be used. {self.problems[provider_id]}")
        known = ("auto", "rehearsal", *sorted(self.providers))
        advice = suggestion(provider_id, known) or f" Known providers: {', '.join(known)}."
        raise ProviderUnknown(f"There is no provider '{provider_id}'.{advice}")

    def quirks(self, provider: Provider, endpoint: str, model_id: str) -> Quirks:
        """The habits of a model of `provider` at `endpoint`.

        A generic row is used for servers of any vendor: there the row that names the server's host decides, if any.
        """
        row = provider
        if provider.generic and not provider.serves(endpoint):
            same_wire = (each for each in self.providers.values() if each.runtime == provider.runtime)
            found = next((each for each in same_wire if each.serves(endpoint)), None)
            if found is None:
                return PLAIN
            row = found
        info = row.model(model_id)
        return row.quirks.with_changes(info.quirks) if info is not None else row.quirks


def load_registry(home: HomeLayout) -> Registry:
    """All rows in effect now. Costs a few `stat` calls when nothing changed."""
    providers: dict[str, Provider] = {}
    problems: dict[str, str] = {}
    for path in _rows(home, problems):
        try:
            row = _ROWS.get(path)
        except ConfigFileInvalid as error:
            problems[path.stem] = error.message
            continue
        if row is not None and row.revision >= _revision(providers.get(row.id)):
            providers[row.id] = row
    return Registry(providers, problems)


def _rows(home: HomeLayout, problems: dict[str, str]) -> Iterator[Path]:
    for folder in _folders(home):
        try:
            found = entries(folder) or ()
        except ConfigFileInvalid as error:
            problems[folder.name] = error.message
            continue
        for path in found:
            if path.suffix == ".yaml":
                yield path


@lru_cache(maxsize=16)
def _folders(home: HomeLayout) -> tuple[Path, ...]:
    return (BUNDLED / "models", home.global_models, home.installed_models)


def _revision(row: Provider | None) -> int:
    return row.revision if row is not None else -1


def _parse(path: Path, data: bytes) -> Provider:
    return parse_provider(path, parse_mapping(path, data))


_ROWS: FileCache[Provider] = FileCache(_parse)
