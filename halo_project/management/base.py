"""What all commands of `halo` share: their help without Django's own options, and lines that are safe to print."""

from argparse import SUPPRESS
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from halo_project.errors import BadRequest
from halo_project.printable import printable


class HaloCommand(BaseCommand):
    """listed: whether `halo --help` names it. Django's options hold and are not shown."""

    listed = True
    suppressed_base_arguments = frozenset({
        "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color",
    })  # fmt: skip

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        for action in parser._actions:
            if action.dest == "skip_checks":  # the one that `suppressed_base_arguments` does not reach
                action.help = SUPPRESS
        return parser

    def needed_workspace(self, options: Mapping[str, Any], why: str) -> str:
        """Raises BadRequest, which begins with `why`."""
        if not options["workspace"]:
            raise BadRequest(f"{why}: name it with -w <path>.", code="bad_project_id")
        return options["workspace"]

    def write_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.stdout.write(printable(line))


def add_switch_verbs(verbs: Any, kind: str) -> None:
    """`on <id>` and `off <id>`, as subcommands. kind: of what."""
    for verb, text in (("on", f"Switch this {kind} on again."), ("off", f"Switch this {kind} off in one workspace.")):
        switch = verbs.add_parser(verb, help=text, description=text)
        switch.add_argument(kind, help=f"the {kind}'s id")
        # Suppressed, so that what was given before the verb still counts.
        switch.add_argument(
            "-w", "--workspace", default=SUPPRESS, type=absolute_path, metavar="path", help="the workspace"
        )


def absolute_path(path: str) -> str:
    """An option's path, seen from the folder one is in."""
    return str(Path(path).expanduser().absolute())


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell, two blanks between them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
