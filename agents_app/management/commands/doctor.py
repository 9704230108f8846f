"""`halo doctor [provider …] [--json]`: ask each provider one tiny question; exit code 1 if one does not answer well.

It also tells whether commands of the lower access levels can be run in a sandbox here, which is no fault if not.
"""

import json
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from agents_app.doctor import Checkup, ProviderCheck, run_checkup
from agents_app.tools.sandbox_trial import Trial, try_sandbox
from halo_project.management.base import HaloCommand, table
from halo_project.printable import printable

_HEAD = ("provider", "result", "model", "endpoint", "time")


class Command(HaloCommand):
    help = "Check every provider that has a key, or those named, with one tiny request each."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("providers", nargs="*", metavar="provider", help="check only these, also without a key")
        parser.add_argument("--json", action="store_true", help="the result as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        checkup = run_checkup(settings.HALO_HOME, settings.HALO.lookup, options["providers"])
        trial = None if options["providers"] else try_sandbox()
        self.stdout.write(_as_json(checkup, trial) if options["json"] else _as_text(checkup, trial))
        if not checkup.is_good:
            sys.exit(1)


def _as_json(checkup: Checkup, trial: Trial | None) -> str:
    told = {"ok": checkup.is_good, **checkup.to_dict()}
    if trial is not None:
        told["sandbox"] = {"ok": trial.program is not None, "reason": trial.reason}
    return json.dumps(told, indent=2)


def _as_text(checkup: Checkup, trial: Trial | None) -> str:
    lines = _table(checkup.checks) if checkup.checks else ["No provider has a key: there is nothing to check."]
    if checkup.no_key:
        lines.append(f"no key: {', '.join(checkup.no_key)}")
    if checkup.keyless:
        lines.append(f"need no key, checked when named: {', '.join(checkup.keyless)}")
    if trial is not None:
        lines.append(
            f"sandbox: {trial.reason or trial.note or 'works; commands of sessions below full access run in it'}"
        )
    return "\n".join(map(printable, lines))


def _table(checks: tuple[ProviderCheck, ...]) -> list[str]:
    """A line for each check; what there is to say about it follows on a line of its own."""
    lines = table([_HEAD, *map(_cells, checks)])
    told = [
        [line, f"  {check.detail}"] if check.detail else [line] for line, check in zip(lines[1:], checks, strict=True)
    ]
    return [lines[0], *(line for pair in told for line in pair)]


def _cells(check: ProviderCheck) -> tuple[str, ...]:
    time = "" if check.ms is None else f"{check.ms} ms"
    return check.provider, check.verdict.replace("_", " "), check.model or "-", check.endpoint or "-", time
