"""A test run keeps to a home of its own: the developer's Halo is neither read nor written."""

import os
from pathlib import Path

from django.conf import settings


def test_settings_use_the_home_that_the_tests_made():
    assert settings.HALO_HOME.home == Path(os.environ["HALO_HOME"])
    assert settings.HALO_HOME.home.name.startswith("halo-tests-")
