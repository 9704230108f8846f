"""Bringing the tables up to date, and the tables of a newer release."""

import pytest
from django.core.management import call_command
from django.db.migrations.recorder import MigrationRecorder

from halo_project.layout import HomeLayout
from halo_project.schema import SchemaTooNew, update_schema


@pytest.mark.django_db
def test_T6_the_tables_of_a_newer_release_are_left_alone(home: HomeLayout) -> None:
    update_schema()
    row = MigrationRecorder.Migration.objects.create(app="sessions_app", name="0099_future")
    with pytest.raises(SchemaTooNew, match="sessions_app 0099_future is not known here"):
        update_schema()
    with pytest.raises(SchemaTooNew):
        call_command("skills")
    row.delete()
    MigrationRecorder.Migration.objects.create(app="an_app_of_others", name="0001_initial")
    update_schema()
