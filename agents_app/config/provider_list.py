"""The providers of this installation as a person asks about them: which copy is in effect, and is there a key."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents_app.config.env_references import EnvLookup
from agents_app.config.errors import shown
from agents_app.config.files import BUNDLED
from agents_app.config.keys import KeyStatus, key_status, preference
from agents_app.config.registry import load_registry
from agents_app.config.registry_row import RUNTIMES, ModelInfo, Provider
from agents_app.config.settings_file import load_settings
from halo_project.layout import HomeLayout


@dataclass(frozen=True, slots=True)
class ListedProvider:
    """source: `bundled`, or the file below HALO_HOME/global. key: set, missing, unusable, not needed, or an account
    (of AWS, found when it is asked for).

    key_source: the variable or the setting that the key comes from, or that a missing one is expected in.
    """

    row: Provider
    source: str
    key: str
    key_source: str | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.row.id,
            "displayName": self.row.display_name,
            "runtime": self.row.runtime,
            "revision": self.row.revision,
            "source": self.source,
            "key": self.key,
            "keySource": self.key_source,
            "defaultModelId": self.row.default_model_id,
            "defaultEndpoint": self.row.default_endpoint,
            "endpointPresets": list(self.row.endpoint_presets),
            "models": [_model(model) for model in self.row.models],
        }


@dataclass(frozen=True, slots=True)
class ProviderList:
    """`problems`: for each row that cannot be used the sentence that says why."""

    providers: tuple[ListedProvider, ...]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"providers": [each.to_dict() for each in self.providers], "problems": list(self.problems)}


def list_providers(home: HomeLayout, env_lookup: EnvLookup, only: Sequence[str] = ()) -> ProviderList:
    """All of them, or those named in `only`. Raises ProviderUnknown, ConfigFileInvalid."""
    registry = load_registry(home)
    settings = load_settings(home, env_lookup)
    rows = [registry.get(name) for name in only] or sorted(registry.providers.values(), key=preference)
    problems = [sentence for name, sentence in sorted(registry.problems.items()) if not only or name in only]
    problems += [
        f"{shown(row.path)}: `runtime` is '{row.runtime}'; this Halo speaks {', '.join(RUNTIMES)}."
        for row in rows
        if row.runtime not in RUNTIMES
    ]
    problems += [row.unread_sentence for row in rows if row.unread]
    return ProviderList(tuple(_listed(row, key_status(row, settings), home) for row in rows), tuple(problems))


def _listed(row: Provider, status: KeyStatus, home: HomeLayout) -> ListedProvider:
    bundled = row.path.is_relative_to(BUNDLED)
    source = "bundled" if bundled else row.path.relative_to(home.global_dir).as_posix()
    key = _key_word(row, status)
    place = status.source if key == "set" else status.env_name or status.setting
    if key in ("not needed", "an account"):
        place = None
    return ListedProvider(row, shown(source), key, place)


def _key_word(row: Provider, status: KeyStatus) -> str:
    if status.present:
        return "set"
    if status.malformed:
        return "unusable"
    if status.needed:
        return "missing"
    return "an account" if row.secrets else "not needed"


def _model(model: ModelInfo) -> dict[str, Any]:
    return {
        "id": model.id,
        "displayName": model.display_name,
        "contextWindow": model.context_window,
        "maxContextWindow": model.max_context_window,
        "maxOutputTokens": model.max_output_tokens,
        "image": model.image,
        "thinking": model.thinking.mode if model.thinking else None,
    }
