"""`manage.py import-cron <path>`: take in the schedules of the original program. Also `halo import-cron`."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from cron_app.original.importing import Summary, import_cron
from halo_project import schema
from halo_project.clock import utcnow
from halo_project.management.base import HaloCommand, absolute_path
from halo_project.printable import printable


class Command(HaloCommand):
    help = "Take in the schedules of the original Halo with their history, from its cron.db. Safe to run twice."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "path", type=absolute_path, help="the original's cron.db, or the folder it is in; it is only read"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        schema.update_schema()
        path = Path(options["path"])
        summary = import_cron(path / "cron.db" if path.is_dir() else path, utcnow())
        for word, lines in (
            ("left out", summary.left_out), ("disabled", summary.disabled), ("note", summary.notes)
        ):  # fmt: skip
            for name, sentence in lines:
                self.stderr.write(printable(f"{word} {name}: {sentence}"))
        self.write_lines(_counts(summary))
        if summary.left_out:
            sys.exit(1)


def _counts(summary: Summary) -> list[str]:
    return [
        f"jobs: {summary.jobs} taken in, {len(summary.disabled)} of them disabled; {summary.known_jobs} were here",
        f"runs: {summary.runs} taken in; {summary.known_runs} were here",
        *([f"{len(summary.left_out)} rows were left out"] if summary.left_out else []),
    ]
