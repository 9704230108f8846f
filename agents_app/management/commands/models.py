"""`halo models list` and `halo models install <dir>`: the providers, and new rows for them."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from agents_app.config.endpoint_changes import Change
from agents_app.config.models_install import InstallPlan, Outcome, PlannedRow, install_models
from agents_app.config.provider_list import ListedProvider, list_providers
from agents_app.config.registry_row import ModelInfo, Provider
from halo_project.management.base import HaloCommand, table

NEEDS_CONSENT = 3
_COLUMNS = ("provider", "name", "protocol", "revision", "from", "key", "default model", "models")
_MODEL_COLUMNS = ("  model", "context window", "max output", "image", "thinking")


class Command(HaloCommand):
    help = "List model providers, or install rows for them from a folder."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|install")
        text = "List the providers, where each one's row comes from, and whether it has a key."
        listing = verbs.add_parser("list", help=text, description=text)
        listing.add_argument("providers", nargs="*", metavar="provider", help="only these, with their models")
        listing.add_argument("-v", "--verbose", action="store_true", help="with the models of each")
        listing.add_argument("--json", action="store_true", help="everything as one JSON object")
        text = (
            "Install the provider rows (*.yaml) of a folder. Exit code 3, and nothing written, when requests or keys"
            " would go to where none went before: --yes agrees to that."
        )
        install = verbs.add_parser("install", help="Install provider rows from a folder.", description=text)
        install.add_argument("folder", type=Path, metavar="dir", help="a folder with one <provider>.yaml or more")
        install.add_argument("--yes", action="store_true", help="agree to new providers, addresses and key variables")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verb"] == "list":
            self._list(options["providers"], verbose=options["verbose"], as_json=options["json"])
        else:
            self._install(options["folder"], consent=options["yes"])

    def _list(self, names: Sequence[str], *, verbose: bool, as_json: bool) -> None:
        found = list_providers(settings.HALO_HOME, settings.HALO.lookup, names)
        if as_json:
            self.stdout.write(json.dumps(found.to_dict(), indent=2))
            return
        self.write_lines(table([_COLUMNS, *map(_cells, found.providers)]))
        if verbose or names:
            for each in found.providers:
                self.write_lines(
                    [
                        "",
                        each.row.id,
                        *_endpoint_lines(each.row),
                        *table([_MODEL_COLUMNS, *map(_model_cells, each.row.models)]),
                    ]
                )
        if found.problems:
            self.write_lines(["", *(f"problem {sentence}" for sentence in found.problems)])

    def _install(self, folder: Path, *, consent: bool) -> None:
        plan = install_models(folder, settings.HALO_HOME, consent=consent)
        waiting = plan.needs_consent and not consent
        self.write_lines(line for row in plan.rows for line in _row_lines(row))
        self.write_lines([_summary(plan, written=not waiting)])
        if waiting:
            self.stderr.write("Requests or keys would go to where none went before, see `!`. To agree, add --yes.")
            sys.exit(NEEDS_CONSENT)


def _cells(each: ListedProvider) -> tuple[str, ...]:
    row = each.row
    key = f"{each.key}: {each.key_source}" if each.key_source else each.key
    counted = (row.default_model_id or "-", str(len(row.models)))
    return (row.id, row.display_name, row.runtime, str(row.revision), each.source, key, *counted)


def _endpoint_lines(row: Provider) -> list[str]:
    addresses = dict.fromkeys(filter(None, (row.default_endpoint, *row.endpoint_presets)))
    return [f"  endpoint {address}" for address in addresses]


def _model_cells(model: ModelInfo) -> tuple[str, ...]:
    context = _tokens(model.context_window)
    if model.max_context_window is not None:
        context += f" (up to {_tokens(model.max_context_window)})"
    thinking = model.thinking.mode if model.thinking else "-"
    return (f"  {model.id}", context, _tokens(model.max_output_tokens), "yes" if model.image else "no", thinking)


def _tokens(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _row_lines(row: PlannedRow) -> Iterator[str]:
    if row.outcome is Outcome.REFUSED:
        yield f"{row.outcome} {row.provider_id}: {row.reason}"
        return
    against = "" if row.current_revision is None else f", in effect {row.current_revision}"
    yield f"{row.outcome} {row.provider_id}: revision {row.revision}{against}"
    yield from map(_change_line, row.changes)
    if row.note:
        yield f"    note: {row.note}"


def _change_line(change: Change) -> str:
    mark = "!" if change.needs_consent else " "
    if change.before is None:
        return f"  {mark} {change.field} gains {change.after}"
    if change.after is None:
        return f"  {mark} {change.field} loses {change.before}"
    return f"  {mark} {change.field} was {change.before}, becomes {change.after}"


def _summary(plan: InstallPlan, *, written: bool) -> str:
    parts = [
        ("installed" if written else "to install", plan.ids(Outcome.NEW, Outcome.UPDATE)),
        ("up to date", plan.ids(Outcome.UP_TO_DATE)),
        ("skipped", plan.ids(Outcome.SKIPPED)),
        ("refused", plan.ids(Outcome.REFUSED)),
    ]
    counts = ", ".join(f"{word} {len(ids)}" + (f" ({', '.join(ids)})" if ids else "") for word, ids in parts)
    return counts if written else f"Nothing was written. {counts}"
