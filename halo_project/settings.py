"""Django's settings, from the checked environment. Values only: what they drive lives in the modules they name."""

from pathlib import Path

import dj_database_url

from halo_project import VERSION
from halo_project.allowed_hosts import allowed_host_names
from halo_project.asset_version import tree_version
from halo_project.env import read_env
from halo_project.layout import HomeLayout
from halo_project.local_zone import local_zone_name
from halo_project.log_format import logging_config
from halo_project.redis_urls import celery_broker_url
from halo_project.timing import Timing

BASE_DIR = Path(__file__).resolve().parent.parent

HALO_VERSION = VERSION
HALO = read_env()
HALO_HOME = HomeLayout(HALO.home)
HALO_HOME.prepare()
HALO_ZONE = HALO.timezone or local_zone_name()
HALO_TIMING = Timing().scaled(HALO.time_scale)
HALO_REDIS_URL = HALO.redis_url or f"unix://{HALO_HOME.redis_socket}"

SECRET_KEY = HALO_HOME.django_key()
DEBUG = False
ALLOWED_HOSTS = allowed_host_names(HALO)
ROOT_URLCONF = "halo_project.urls"
ASGI_APPLICATION = "halo_project.asgi.application"
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
LANGUAGE_CODE = "en"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rest_framework",
    "channels",
    "django_celery_beat",
    "halo_project",
    "sessions_app",
    "agents_app",
    "channels_app",
    "cron_app",
    "admin_ui",
]

MIDDLEWARE = [
    "halo_project.middleware.security_headers",
    "halo_project.static_files.StaticFiles",
    "channels_app.auth.cross_site.CrossSiteMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "halo_project.api_errors.HaloErrorMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
    }
]

# SQLite: WAL, and every transaction takes the write lock at its start, so that none fails half-way with "locked".
_SQLITE_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=NORMAL",
    "busy_timeout=20000",
    "cache_size=-32768",
    "temp_store=MEMORY",
    "mmap_size=134217728",
    "journal_size_limit=67108864",
    "foreign_keys=ON",
)
_SQLITE_OPTIONS = {
    "timeout": 20,
    "transaction_mode": "IMMEDIATE",
    "init_command": " ".join(f"PRAGMA {pragma};" for pragma in _SQLITE_PRAGMAS),
}
_POSTGRES_OPTIONS = {"connect_timeout": 5, "options": "-c lock_timeout=10000"}

DATABASES = {"default": dj_database_url.parse(HALO.database_url or f"sqlite:///{HALO_HOME.database}")}
DATABASES["default"]["CONN_MAX_AGE"] = None  # halo_project.database closes what must not last
DATABASES["default"].setdefault("OPTIONS", {})
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"].update(_SQLITE_OPTIONS)
    DATABASES["default"]["TEST"] = {"NAME": str(HALO_HOME.home / "test.sqlite3")}  # a file, so that threads share it
else:
    DATABASES["default"]["OPTIONS"] = _POSTGRES_OPTIONS | DATABASES["default"]["OPTIONS"]
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True

SESSION_COOKIE_NAME = "halo_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 30 * 24 * 3600
SESSION_SERIALIZER = "django.contrib.sessions.serializers.JSONSerializer"
CSRF_COOKIE_NAME = "halo_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
DATA_UPLOAD_MAX_MEMORY_SIZE = 32 * 1024 * 1024
APPEND_SLASH = False

PASSWORD_HASHERS = ["halo_project.passwords.PasswordHasher"]

STATICFILES_DIRS = [BASE_DIR / "admin_ui" / "static"]
STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
STATIC_URL = f"/static/{tree_version(STATICFILES_DIRS[0])}/"
WHITENOISE_ALLOW_ALL_ORIGINS = False
WHITENOISE_USE_FINDERS = False

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["channels_app.auth.drf.CookieAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["channels_app.auth.drf.LoggedIn"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["halo_project.json_body.JsonBody"],
    "EXCEPTION_HANDLER": "halo_project.api_errors.handle",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}

CELERY_BROKER_URL = celery_broker_url(HALO_REDIS_URL)
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "global_keyprefix": f"halo:{HALO_HOME.installation_id()}:",
    "socket_connect_timeout": 3,
    "socket_timeout": 5,
    # How long whoever gives a wake-up tries to connect, which is 2 and 4 s unless told. A worker tries for ever.
    "max_retries": 2,
    "interval_start": 0.05,
    "interval_step": 0.2,
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # for ever: the supervisor restarts what is down
CELERY_TASK_DEFAULT_QUEUE = "housekeeping"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 3, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.5}
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_BEAT_SCHEDULER = "halo_project.beat_schedule:BeatScheduler"

LOGGING_CONFIG = "logging.config.dictConfig"
LOGGING = logging_config(HALO.log_level)
