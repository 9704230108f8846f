"""The `halo` command. `serve` starts without Django; the other subcommands are management commands of our apps."""

import ast
import os
import signal
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from halo_project import VERSION
from halo_project.errors import ConfigurationError, HaloError
from halo_project.suggestions import suggestion

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
        sys.stdout.write(USAGE.format(commands="\n".join(_listing())))
    elif arguments[0] not in command_names():
        meant = suggestion(arguments[0], command_names())
        _fail(f"There is no command {arguments[0]!r}.{meant} `halo --help` lists them.")
    else:
        _run(arguments)


def manage() -> None:
    """Entry of `manage.py`: Halo's commands and Django's."""
    _run(sys.argv[1:])


def command_names() -> list[str]:
    """Every file in an app's `management/commands` is a command."""
    return sorted(_files())


def _files() -> dict[str, Path]:
    folders = [_ROOT / app / "management" / "commands" for app in _APPS]
    return {path.stem: path for folder in folders for path in folder.glob("*.py") if not path.stem.startswith("_")}


def _listing() -> Iterator[str]:
    """What each command says of itself, read from its source: nothing is imported for it."""
    files = _files()
    about = {name: _class_texts(files[name]) for name in sorted(files)}
    shown = {name: str(texts.get("help", "")) for name, texts in about.items() if texts.get("listed") is not False}
    width = max(map(len, shown)) + 4
    for name, text in shown.items():
        yield textwrap.fill(text, 100, initial_indent=f"  {name}".ljust(width), subsequent_indent=" " * width)


def _class_texts(path: Path) -> dict[str, object]:
    """The plain values that the class in this file is given."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = [node for each in tree.body if isinstance(each, ast.ClassDef) for node in each.body]
    assigned = [(node.targets[0], node.value) for node in body if isinstance(node, ast.Assign)]
    return {
        target.id: value.value
        for target, value in assigned
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant)
    }


def _run(arguments: list[str]) -> None:
    try:
        if arguments == ["serve"]:
            from halo_project.supervisor.serve import serve

            sys.exit(serve())
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "halo_project.settings")
        _execute(arguments)
    except ConfigurationError as error:
        _fail(error.message)
    except HaloError as error:
        _fail(error.message, code=1)
    except KeyboardInterrupt:
        sys.exit(130)


def _execute(arguments: list[str]) -> None:
    """Whoever reads the output may go before it ends, as `head` does: that is told by the exit code alone."""
    from django.core.management import execute_from_command_line

    try:
        try:
            execute_from_command_line([Path(sys.argv[0]).name, *arguments])
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left has nowhere to go
        sys.exit(128 + signal.SIGPIPE)


def _fail(message: str, *, code: int = 2) -> None:
    sys.stderr.write(f"halo: {message}\n")
    sys.exit(code)
