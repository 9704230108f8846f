"""`halo sessions migrate|check|index …`: the maintenance commands of the session files under one name."""

from typing import Any

from django.core.management import load_command_class
from django.core.management.base import CommandParser

from halo_project.management.base import HaloCommand

_VERBS = {"migrate": "migrate-sessions", "check": "check-sessions", "index": "index-sessions"}


class Command(HaloCommand):
    help = "Convert sessions from 1.x, look for damage, or make rows for copied files."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="|".join(_VERBS))
        for verb, name in _VERBS.items():
            command = load_command_class("sessions_app", name)
            command.add_arguments(verbs.add_parser(verb, help=command.help, description=command.help))

    def handle(self, *args: Any, **options: Any) -> None:
        command = load_command_class("sessions_app", _VERBS[options["verb"]])
        command.stdout, command.stderr = self.stdout, self.stderr
        command.handle(*args, **options)
