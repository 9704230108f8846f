"""Django's own checks. Our processes skip them at their start, so they are run here."""

import pytest
from django.core.management import call_command


@pytest.mark.django_db
def test_no_check_complains_and_no_migration_is_missing():
    call_command("check", fail_level="WARNING", databases=["default"])
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
