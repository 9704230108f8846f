"""`manage.py check-sessions -w <workspace> [--json] [--repair]`: look through all sessions.

Also `halo sessions check`.
"""

import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from halo_project import schema
from halo_project.clock import utcnow
from halo_project.management.base import HaloCommand
from halo_project.printable import printable
from sessions_app.checking import Report, check
from sessions_app.management.workspace_option import add_workspace_option
from sessions_app.repairing import repair


class Command(HaloCommand):
    listed = False  # `halo sessions` is
    help = "Read every session of a workspace and report what is wrong; exit code 1 if anything is."

    def add_arguments(self, parser: CommandParser) -> None:
        add_workspace_option(parser)
        parser.add_argument("--json", action="store_true", help="the report as one JSON object")
        parser.add_argument("--repair", action="store_true", help="mend what can be mended without losing content")

    def handle(self, *args: Any, **options: Any) -> None:
        schema.update_schema()
        path = options["workspace"]
        report = repair(path, utcnow()) if options["repair"] else check(path)
        self.stdout.write(_as_json(report) if options["json"] else _as_text(report))
        if not report.is_good:
            sys.exit(1)


def _as_json(report: Report) -> str:
    return json.dumps({"ok": report.is_good, **asdict(report)}, indent=2)


def _as_text(report: Report) -> str:
    lines = [f"repaired {name}: {sentence}" for name, sentence in report.repaired]
    lines += [f"{'note' if one.note else one.kind} {one.session}: {one.detail}" for one in report.problems]
    wrong = sum(not one.note for one in report.problems)
    lines.append(f"{report.sessions} sessions, {wrong} problems, {len(report.problems) - wrong} notes")
    return "\n".join(map(printable, lines))
