"""Bringing the database's tables up to date, for whoever comes first: the web process or a command."""

from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.models import Model

from halo_project.errors import HaloError


class SchemaTooNew(HaloError):
    """A newer release changed the tables; what this one would write into them nobody knows."""

    code = "schema_too_new"


def update_schema() -> None:
    """Run the migrations that are pending, if any.

    Raises SchemaTooNew, and django.db.Error when the database does not answer.
    """
    executor = MigrationExecutor(connection)
    unknown = _unknown(executor.loader)
    if unknown is not None:
        raise SchemaTooNew(
            f"The database ({database_name()}) was brought up to date by a newer Halo ({unknown} is not known here). "
            "Start that version, or another database: set HALO_HOME or HALO_DATABASE_URL."
        )
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0, skip_checks=True)


def database_name() -> str:
    """The database as a message names it; its address may hold a password."""
    return "HALO_DATABASE_URL" if settings.HALO.database_url else str(settings.HALO_HOME.database)


def _unknown(loader: MigrationLoader) -> str | None:
    """A migration that was applied and is none of this release."""
    known = {replaced for each in loader.disk_migrations.values() for replaced in each.replaces}
    known |= loader.disk_migrations.keys()
    ours = (key for key in sorted(loader.applied_migrations) if key[0] in loader.migrated_apps)
    return next((" ".join(key) for key in ours if key not in known), None)


def has_column(model: type[Model], name: str) -> bool:
    """Whether the table of a model has this column by now: an older release made it without. Makes nothing either."""
    if not has_table(model):
        return False
    with connection.cursor() as cursor:
        columns = connection.introspection.get_table_description(cursor, model._meta.db_table)
    return name in {column.name for column in columns}


def has_table(model: type[Model]) -> bool:
    """Whether the table of a model was made. For readers that must not make anything: no database file either."""
    if connection.vendor == "sqlite" and not Path(str(connection.settings_dict["NAME"])).exists():
        return False
    return model._meta.db_table in connection.introspection.table_names()
