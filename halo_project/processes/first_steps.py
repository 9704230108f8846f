"""What the web process does before and beside serving: schema, Redis check, password, report on model providers."""

import logging

import redis
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection

from halo_project import schema
from halo_project.errors import ConfigurationError
from halo_project.passwords import ensure_password
from halo_project.processes.link import Link
from halo_project.redis_client import sync_redis

logger = logging.getLogger(__name__)


def update_schema(link: Link) -> None:
    """Run the migrations that are pending, if any, and say so. A database that does not answer, or is a newer
    release's, ends the process."""
    try:
        schema.update_schema()
    except schema.SchemaTooNew as error:
        link.fatal(error.message)
    except DatabaseError as error:
        link.fatal(f"The database ({schema.database_name()}) cannot be used: {_first_line(error)}.")
    finally:
        connection.close()
    link.say("schema")


def check_redis(link: Link) -> None:
    """The bundled server is the supervisor's business; one that was named by HALO_REDIS_URL must answer."""
    if settings.HALO.redis_url is None:
        return
    try:
        sync_redis().ping()
    except redis.RedisError as error:
        link.fatal(f"The Redis server named by HALO_REDIS_URL does not answer: {_first_line(error)}.")


def report_password(link: Link) -> None:
    """Tell the supervisor the password if it had to be made."""
    password = ensure_password()
    link.say("password", password=password)


def report_providers(link: Link) -> None:
    """Bring the copies of what comes with Halo up to date; tell the supervisor which providers have a key, or why
    that is not known."""
    from agents_app.config.bundled_rows import refresh_bundled_rows
    from agents_app.config.keys import providers_with_key
    from agents_app.config.platform_files import refresh_platform_files

    refresh_bundled_rows(settings.HALO_HOME)
    refresh_platform_files(settings.HALO_HOME)
    try:
        found = providers_with_key(settings.HALO_HOME, settings.HALO.lookup)
    except ConfigurationError as error:
        logger.warning("which models there are is not known: %s", error.message)
        link.say("providers", problem=error.message)
        return
    link.say("providers", names=[provider.display_name for provider in found])


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).split("\n", 1)[0].rstrip(".")
