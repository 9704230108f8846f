"""`-w`: the workspace a command works on."""

from pathlib import Path

from django.core.management.base import CommandParser


def add_workspace_option(parser: CommandParser) -> None:
    parser.add_argument(
        "-w",
        "--workspace",
        default=".",
        type=_absolute,
        help="the workspace folder; the folder you are in when left out",
    )


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())
