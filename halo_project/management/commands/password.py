"""`halo password`: set a new password. Everyone who is signed in has to sign in again."""

import sys
from getpass import getpass
from typing import Any

from django.core.management.base import CommandParser

from halo_project.errors import BadRequest
from halo_project.management.base import HaloCommand
from halo_project.passwords import refuse_if_from_env, set_password


class Command(HaloCommand):
    help = "Set a new password. Asks for it twice, or reads one line with --stdin."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--stdin", action="store_true", help="read the new password from standard input")

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_if_from_env()
        set_password(sys.stdin.readline().rstrip("\n") if options["stdin"] else _asked_twice())
        self.stdout.write("The new password is set. Whoever is signed in has to sign in again.")


def _asked_twice() -> str:
    first = getpass("New password: ")
    if getpass("Once more: ") != first:
        raise BadRequest("The two passwords are not the same. Nothing was changed.", code="passwords_differ")
    return first
