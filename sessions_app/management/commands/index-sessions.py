"""`manage.py index-sessions -w <workspace>`: make rows for sessions that are only files. Also `halo sessions index`."""

import sys
from typing import Any

from django.core.management.base import CommandParser

from halo_project import schema
from halo_project.clock import utcnow
from halo_project.management.base import HaloCommand
from sessions_app.checking import workspace_at
from sessions_app.indexing import index_files
from sessions_app.management.workspace_option import add_workspace_option
from sessions_app.workspaces import open_workspace


class Command(HaloCommand):
    listed = False  # `halo sessions` is
    help = (
        "Make a row for every session that a workspace holds only as files, say after it was copied from elsewhere; "
        "exit code 1 if one gets none."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_workspace_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        schema.update_schema()
        now = utcnow()
        root, _ = workspace_at(options["workspace"])
        done = index_files(open_workspace(str(root), now), now)
        for name in done.made:
            self.stdout.write(f"indexed {name}")
        for name, reason in done.failed:
            self.stderr.write(f"failed {name}: {reason}")
        self.stdout.write(f"{len(done.made)} rows made")
        if done.legacy:
            self.stdout.write(f"{done.legacy} sessions are of 1.x: `halo sessions migrate v1 v2` makes their rows")
        if done.failed:
            sys.exit(1)
