"""`halo agents`: who there is and what is wrong with whom; `prompt` shows what one is told, `on` and `off` switch."""

import json
import sys
from argparse import SUPPRESS
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandParser

from agents_app import agent_files
from agents_app.agent_list import AgentRow, list_rows
from agents_app.prompt_preview import PromptPreview, preview
from halo_project import schema
from halo_project.layout import resolve_workspace
from halo_project.management.base import HaloCommand, absolute_path, add_switch_verbs, table
from halo_project.printable import printable

_COLUMNS = ("agent", "name", "model", "from", "state", "priority")


class Command(HaloCommand):
    help = "List the agents, show the prompt that one is given, or switch one off and on in a workspace."

    def add_arguments(self, parser: CommandParser) -> None:
        _options(parser, text="the workspace; the installation alone when left out")
        parser.add_argument("--internal", action="store_true", help="with the agents of Halo itself")
        verbs = parser.add_subparsers(dest="verb", metavar="prompt|on|off")
        text = "Show the assembled prompt, as the next round would send it; each part with the files it is made of."
        prompt = verbs.add_parser("prompt", help=text, description=text)
        prompt.add_argument("agent", help="the agent's id")
        # Suppressed, so that what was given before the verb still counts.
        _options(prompt, SUPPRESS, text="the workspace")
        prompt.add_argument("-s", "--session", default="", help="of this session, instead of a new one")
        prompt.add_argument("--sub", action="store_true", help="as a sub-agent, not as one that talks to a person")
        prompt.add_argument("--plain", action="store_true", help="the text alone, as it is sent")
        add_switch_verbs(verbs, "agent")

    def handle(self, *args: Any, **options: Any) -> None:
        schema.update_schema()
        if options["verb"] is None:
            self._list(options)
        elif options["verb"] == "prompt":
            self._prompt(options)
        else:
            self._switch(options)

    def _list(self, options: dict[str, Any]) -> None:
        workspace = resolve_workspace(options["workspace"]) if options["workspace"] else None
        rows = list_rows(workspace, internal=options["internal"])
        if options["json"]:
            self.stdout.write(json.dumps({"agents": [row.to_dict() for row in rows]}, indent=2))
        else:
            self.write_lines(table([_COLUMNS, *map(_cells, rows)]))
            remarks = [line for row in rows for line in _remarks(row)]
            self.write_lines(["", *sorted(remarks, key=_problems_first)] if remarks else [])
        if any(row.listing.error for row in rows):
            sys.exit(1)

    def _prompt(self, options: dict[str, Any]) -> None:
        workspace = self.needed_workspace(options, "A prompt is made for one workspace")
        found = preview(options["agent"], workspace, options["session"], root=not options["sub"])
        if options["json"]:
            self.stdout.write(json.dumps(found.to_dict(), indent=2))
        elif options["plain"]:
            self.write_lines(found.text.split("\n"))
        else:
            self.write_lines(_prompt_lines(found))
        if found.model_error:
            self.stderr.write(printable(f"No model would answer now. {found.model_error}"))

    def _switch(self, options: dict[str, Any]) -> None:
        workspace = self.needed_workspace(options, "An agent is switched in one workspace")
        off = agent_files.toggle(options["agent"], None, workspace, options["verb"] == "off")
        self.write_lines([f"The agent '{options['agent']}' is {'off' if off else 'on'} in {workspace}."])


def _options(parser: CommandParser, default: str | None = None, *, text: str) -> None:
    parser.add_argument("-w", "--workspace", default=default, type=absolute_path, metavar="path", help=text)
    parser.add_argument("--json", action="store_true", default=default or False, help="everything as one JSON object")


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
        yield f"problem {name}: {row.listing.error}"
    for warning in row.warnings:
        yield f"warning {name}: {warning}"
    without_model = row.to_dict().get("modelError")
    if without_model:
        yield f"warning {name}: {without_model['error']}"


def _problems_first(line: str) -> bool:
    return not line.startswith("problem ")


def _prompt_lines(found: PromptPreview) -> Iterator[str]:
    for section in found.sections:
        yield f"=== {section.name} ({len(section.text):,} characters)"
        yield from (f"=   {path}" for path in section.files)
        yield ""
        yield from section.text.split("\n")
        yield ""
    yield f"=== {len(found.sections)} parts, {len(found.text):,} characters"
