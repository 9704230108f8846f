"""`halo agents` and `halo agents prompt <id>`: who there is, what is wrong with whom, and what one is told."""

import json
import sys
from argparse import SUPPRESS
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents_app.agent_list import AgentRow, list_rows
from agents_app.prompt_preview import PromptPreview, preview
from halo_project import schema
from halo_project.layout import resolve_workspace
from halo_project.printable import printable

_COLUMNS = ("agent", "name", "model", "from", "state", "priority")


class Command(BaseCommand):
    help = "List the agents, or show the prompt that one of them is given."

    def add_arguments(self, parser: CommandParser) -> None:
        _options(parser, text="the workspace; the installation when left out")
        parser.add_argument("--internal", action="store_true", help="with the agents of Halo itself")
        verbs = parser.add_subparsers(dest="verb", metavar="prompt")
        text = "Show the assembled prompt, as the next round would send it; each part with the files it is made of."
        prompt = verbs.add_parser("prompt", help=text, description=text)
        prompt.add_argument("agent", help="the agent's id")
        # Suppressed, so that what was given before the verb still counts.
        _options(prompt, SUPPRESS, text="the workspace; the folder you are in when left out")
        prompt.add_argument("-s", "--session", default="", help="of this session, instead of a new one")
        prompt.add_argument("--sub", action="store_true", help="as a sub-agent, not as one that talks to a person")
        prompt.add_argument("--plain", action="store_true", help="the text alone, as it is sent")

    def handle(self, *args: Any, **options: Any) -> None:
        schema.update_schema()
        if options["verb"] == "prompt":
            self._prompt(options)
        else:
            self._list(options)

    def _list(self, options: dict[str, Any]) -> None:
        workspace = resolve_workspace(options["workspace"]) if options["workspace"] else None
        rows = list_rows(workspace, internal=options["internal"])
        if options["json"]:
            self.stdout.write(json.dumps({"agents": [row.to_dict() for row in rows]}, indent=2))
            return
        self._write(_table([_COLUMNS, *map(_cells, rows)]))
        remarks = [line for row in rows for line in _remarks(row)]
        self._write(["", *remarks] if remarks else [])
        if any(row.listing.error for row in rows):
            sys.exit(1)

    def _prompt(self, options: dict[str, Any]) -> None:
        workspace = options["workspace"] or str(Path.cwd())
        found = preview(options["agent"], workspace, options["session"], root=not options["sub"])
        if options["json"]:
            self.stdout.write(json.dumps(found.to_dict(), indent=2))
        elif options["plain"]:
            self._write(found.text.split("\n"))
        else:
            self._write(_prompt_lines(found))
        if found.model_error:
            self.stderr.write(printable(f"No model would answer now. {found.model_error}"))

    def _write(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.stdout.write(printable(line))


def _options(parser: CommandParser, default: str | None = None, *, text: str) -> None:
    parser.add_argument("-w", "--workspace", default=default, type=_absolute, metavar="path", help=text)
    parser.add_argument("--json", action="store_true", default=default or False, help="everything as one JSON object")


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def _cells(row: AgentRow) -> tuple[str, ...]:
    listing, values = row.listing, row.to_dict()
    origin = "built in" if row.built_in else listing.scope
    if row.changed:
        origin += ", changed"
    model = values["modelLabel"] + (" (auto)" if values["model"] and values["model"]["auto"] else "")
    return (listing.agent_id, listing.name, model or "-", origin, _state(row, values), f"{listing.priority:g}")


def _state(row: AgentRow, values: dict[str, Any]) -> str:
    if row.listing.error:
        return "broken"
    words = [word for word, holds in (("off", row.disabled), ("internal", row.listing.internal)) if holds]
    if "modelError" in values:
        words.append("no model")
    return ", ".join(words) or "on"


def _remarks(row: AgentRow) -> Iterator[str]:
    name = row.listing.agent_id
    if row.listing.error:
        yield f"{name}: {row.listing.error}"
    for warning in row.warnings:
        yield f"{name}: {warning}"
    problem = row.to_dict().get("modelError")
    if problem:
        yield f"{name}: {problem['error']}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _prompt_lines(found: PromptPreview) -> Iterator[str]:
    for section in found.sections:
        yield f"=== {section.name} ({len(section.text):,} characters)"
        yield from (f"=   {path}" for path in section.files)
        yield ""
        yield from section.text.split("\n")
        yield ""
    yield f"=== {len(found.sections)} parts, {len(found.text):,} characters"
