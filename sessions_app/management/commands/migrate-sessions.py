"""`manage.py migrate-sessions v1 v2 -w <workspace>`: convert every 1.x session of a workspace. Also `halo sessions`."""

import sys
import time
from typing import Any

from django.core.management.base import CommandParser

from halo_project import schema
from halo_project.clock import utcnow
from halo_project.errors import ConfigurationError
from halo_project.management.base import HaloCommand
from sessions_app.management.workspace_option import add_workspace_option
from sessions_app.migration import Summary, migrate

_BAR_CELLS = 24
_SHOW_EVERY_S = 0.1


class Command(HaloCommand):
    listed = False  # `halo sessions` is
    help = "Convert the sessions that Halo 1.x left in a workspace. Stop the server first. Safe to run twice."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", help="the format to convert from: v1")
        parser.add_argument("target", help="the format to convert to: v2")
        add_workspace_option(parser)
        parser.add_argument("--dry-run", action="store_true", help="say what would happen and write nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        if (options["source"], options["target"]) != ("v1", "v2"):
            raise ConfigurationError("only v1 v2 is supported: halo sessions migrate v1 v2 -w <workspace>")
        if not options["dry_run"]:
            schema.update_schema()
        bar = _Bar() if sys.stderr.isatty() else None
        summary = migrate(
            options["workspace"],
            utcnow(),
            dry_run=options["dry_run"],
            progress=None if bar is None else bar.show,
        )
        self._report(summary, dry_run=options["dry_run"])
        if summary.failed:
            sys.exit(1)

    def _report(self, summary: Summary, *, dry_run: bool) -> None:
        for word, lines in (("failed", summary.failed), ("lost", summary.losses), ("note", summary.notes)):
            for name, sentence in lines:
                self.stderr.write(f"{word} {name}: {sentence}")
        counts = (
            f"migrated {summary.migrated}, cleaned {summary.cleaned}, "
            f"skipped {summary.skipped}, failed {len(summary.failed)}"
        )
        self.stdout.write(f"Nothing was written. Would be: {counts}" if dry_run else counts)


class _Bar:
    """One line on a terminal that is drawn over and over, and wiped at the end."""

    def __init__(self) -> None:
        self._drawn_at = 0.0

    def show(self, done: int, total: int, name: str) -> None:
        now = time.monotonic()
        if done < total and now - self._drawn_at < _SHOW_EVERY_S:
            return
        self._drawn_at = now
        filled = _BAR_CELLS * done // max(total, 1)
        line = f"[{'#' * filled}{' ' * (_BAR_CELLS - filled)}] {done}/{total} {name[:40]}"
        sys.stderr.write(f"\r\033[K{line if done < total else ''}")
        sys.stderr.flush()
