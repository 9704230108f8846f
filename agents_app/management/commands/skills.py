"""`halo skills`: which skills there are, where each comes from, and what is wrong with them."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents_app.skill_files import SkillEntry, list_entries
from halo_project.clock import utcnow
from halo_project.printable import printable

_COLUMNS = ("skill", "from", "command", "access", "state", "description")
_DESCRIPTION_CHARS = 80


class Command(BaseCommand):
    help = "List the skills of the installation, and those of a workspace."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("-w", "--workspace", metavar="path", help="with the skills of this workspace")
        parser.add_argument("--json", action="store_true", help="everything as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        project = str(Path(options["workspace"]).absolute()) if options["workspace"] else None
        entries = list_entries(project, utcnow())
        if options["json"]:
            self.stdout.write(json.dumps({"skills": [entry.to_dict() for entry in entries]}, indent=2))
            return
        self._write(_table([_COLUMNS, *map(_cells, entries)]))
        problems = [f"problem {entry.listing.error}" for entry in entries if entry.listing.error]
        warnings = [f"warning {entry.listing.skill_id}: {text}" for entry in entries for text in entry.warnings]
        if problems or warnings:
            self._write(["", *problems, *warnings])

    def _write(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.stdout.write(printable(line))


def _cells(entry: SkillEntry) -> tuple[str, ...]:
    listing, skill = entry.listing, entry.listing.skill
    if skill is None:
        return (listing.skill_id, listing.scope, "-", "-", "broken", "")
    command = f"/{skill.command}" if skill.command and skill.user_invocable else "-"
    about = skill.description
    if len(about) > _DESCRIPTION_CHARS:
        about = f"{about[: _DESCRIPTION_CHARS - 1]}…"
    return (listing.skill_id, listing.scope, command, skill.requires or "-", _state(entry), about)


def _state(entry: SkillEntry) -> str:
    if entry.listing.overridden:
        return "overridden"
    return "disabled" if entry.disabled else "on"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
