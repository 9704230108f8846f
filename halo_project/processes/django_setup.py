"""Django, made ready once per process."""

import os


def setup_django() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "halo_project.settings")
    import django

    django.setup()
