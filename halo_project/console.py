"""The `halo` command. `serve` starts without Django; the other subcommands are management commands of our apps."""

import os
import sys
from pathlib import Path

from halo_project import VERSION
from halo_project.errors import ConfigurationError, HaloError

_ROOT = Path(__file__).resolve().parent.parent
_APPS = ("halo_project", "sessions_app", "agents_app", "channels_app", "cron_app", "admin_ui")

USAGE = """\
usage: halo <command> [options]        halo <command> --help tells more

commands:
{commands}

halo --version shows the version. Settings come from HALO_… variables; README.md lists them.
"""


def main() -> None:
    """Entry of `halo`: only Halo's own commands."""
    arguments = sys.argv[1:]
    if arguments[:1] in (["--version"], ["version"]):
        sys.stdout.write(f"halo {VERSION}\n")
    elif not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(USAGE.format(commands="\n".join(f"  {name}" for name in command_names())))
    elif arguments[0] not in command_names():
        _fail(f"There is no command {arguments[0]!r}. `halo --help` lists them.")
    else:
        _run(arguments)


def manage() -> None:
    """Entry of `manage.py`: Halo's commands and Django's."""
    _run(sys.argv[1:])


def command_names() -> list[str]:
    """Every file in an app's `management/commands` is a command."""
    found = {
        path.stem
        for app in _APPS
        for path in (_ROOT / app / "management" / "commands").glob("*.py")
        if not path.stem.startswith("_")
    }
    return sorted(found)


def _run(arguments: list[str]) -> None:
    try:
        if arguments == ["serve"]:
            from halo_project.supervisor.serve import serve

            sys.exit(serve())
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "halo_project.settings")
        from django.core.management import execute_from_command_line

        execute_from_command_line([Path(sys.argv[0]).name, *arguments])
    except ConfigurationError as error:
        _fail(error.message)
    except HaloError as error:
        _fail(error.message, code=1)
    except KeyboardInterrupt:
        sys.exit(130)


def _fail(message: str, *, code: int = 2) -> None:
    sys.stderr.write(f"halo: {message}\n")
    sys.exit(code)
