"""Bringing the database's tables up to date, for whoever comes first: the web process or a command."""

from pathlib import Path

from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Model


def update_schema() -> None:
    """Run the migrations that are pending, if any. Raises django.db.Error when the database does not answer."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0, skip_checks=True)


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
