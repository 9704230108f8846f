"""`halo skills`: which skills there are, where each comes from, what is wrong with them; `on` and `off` switch one."""

import json
import sys
from typing import Any

from django.core.management.base import CommandParser

from agents_app.skill_files import SkillEntry, list_entries, toggle_skill
from halo_project import schema
from halo_project.clock import utcnow
from halo_project.management.base import HaloCommand, absolute_path, add_switch_verbs, table

_COLUMNS = ("skill", "from", "command", "access", "state", "description")
_DESCRIPTION_CHARS = 80


class Command(HaloCommand):
    help = "List the skills of the installation and of a workspace, or switch one off and on in a workspace."

    def add_arguments(self, parser: CommandParser) -> None:
        text = "with the skills of this workspace; those of the installation alone when left out"
        parser.add_argument("-w", "--workspace", type=absolute_path, metavar="path", help=text)
        parser.add_argument("--json", action="store_true", help="everything as one JSON object")
        verbs = parser.add_subparsers(dest="verb", metavar="on|off")
        add_switch_verbs(verbs, "skill")

    def handle(self, *args: Any, **options: Any) -> None:
        schema.update_schema()
        if options["verb"] is None:
            self._list(options["workspace"], as_json=options["json"])
            return
        workspace = self.needed_workspace(options, "A skill is switched in one workspace")
        off = toggle_skill(options["skill"], None, workspace, utcnow(), disabled=options["verb"] == "off")
        self.write_lines([f"The skill '{options['skill']}' is {'off' if off else 'on'} in {workspace}."])

    def _list(self, project: str | None, *, as_json: bool) -> None:
        entries = list_entries(project, utcnow())
        if as_json:
            self.stdout.write(json.dumps({"skills": [entry.to_dict() for entry in entries]}, indent=2))
        else:
            self.write_lines(table([_COLUMNS, *map(_cells, entries)]))
            problems = [f"problem {e.listing.skill_id}: {e.listing.error}" for e in entries if e.listing.error]
            warnings = [f"warning {e.listing.skill_id}: {text}" for e in entries for text in e.warnings]
            self.write_lines(["", *problems, *warnings] if problems or warnings else [])
        if any(entry.listing.error and not entry.listing.overridden for entry in entries):
            sys.exit(1)


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
