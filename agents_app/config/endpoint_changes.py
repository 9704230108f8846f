"""What a new copy of a provider's row changes about where requests go and which key goes with them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents_app.config.registry_row import Provider


@dataclass(frozen=True, slots=True)
class Change:
    """A field's value gained (`before` is None), lost (`after` is None) or replaced."""

    field: str
    before: str | None
    after: str | None
    needs_consent: bool


def endpoint_changes(new: Provider, current: Provider | None) -> tuple[Change, ...]:
    """Against the copy in effect, or against nothing for a provider that has none. Order does not count."""
    parts = (_protocol, _default, _presets, _models, _keys)
    return tuple(change for part in parts for change in part(new, current))


def _protocol(new: Provider, current: Provider | None) -> Iterator[Change]:
    """Another protocol, or a signature, sends other credentials to the same address."""
    if current is None:
        return
    if new.runtime != current.runtime:
        yield Change("runtime", current.runtime, new.runtime, needs_consent=True)
    if new.quirks.aws_signature and not current.quirks.aws_signature:
        yield Change("quirks.awsSignature", None, "true", needs_consent=True)


def _default(new: Provider, current: Provider | None) -> Iterator[Change]:
    before = current.default_endpoint if current else None
    if new.default_endpoint != before:
        yield Change("defaultEndpoint", before, new.default_endpoint, needs_consent=True)


def _presets(new: Provider, current: Provider | None) -> Iterator[Change]:
    """Any change counts: presets are what a person picks from, and what is left is what will be picked."""
    before = current.endpoint_presets if current else ()
    for gained, lost in _difference(before, new.endpoint_presets):
        yield Change("endpointPresets", lost, gained, needs_consent=True)


def _models(new: Provider, current: Provider | None) -> Iterator[Change]:
    """A model may gain an address that its provider uses already: no server hears from us that did not before."""
    known = current.addresses() if current else frozenset()
    before, after = _addresses_by_model(current), _addresses_by_model(new)
    for model_id in dict.fromkeys((*before, *after)):
        for gained, lost in _difference(before.get(model_id, ()), after.get(model_id, ())):
            needs_consent = gained is not None and gained not in known
            yield Change(f"models[{model_id}].endpoints", lost, gained, needs_consent)


def _keys(new: Provider, current: Provider | None) -> Iterator[Change]:
    """A variable the provider did not read before may hold a key of another vendor, which would then be sent to it."""
    for gained, lost in _difference(_defaults(current), _defaults(new)):
        yield Change("secrets[].default", lost, gained, needs_consent=gained is not None)


def _defaults(row: Provider | None) -> list[str]:
    return [f"{secret.key}: {secret.default}" for secret in row.secrets if secret.default] if row else []


def _addresses_by_model(row: Provider | None) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for model in row.models if row else ():
        found[model.id] = (*found.get(model.id, ()), *model.endpoints)  # a row may name a model twice
    return found


def _difference(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Pairs of which one is None: (gained, None) or (None, lost)."""
    for value in dict.fromkeys(after):
        if value not in before:
            yield value, None
    for value in dict.fromkeys(before):
        if value not in after:
            yield None, value
