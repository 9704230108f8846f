"""Fixtures for every floor: a home of our own before Django is set up, a workspace, a Redis server, a whole Halo."""

import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Settings are read at import, so the home must be chosen here. Nothing of the developer's own Halo is used or touched.
_DATABASE = os.environ.pop("HALO_TEST_DATABASE_URL", "")  # `make test-postgres`
for _name in [name for name in os.environ if name.startswith("HALO_")]:
    del os.environ[_name]
if _DATABASE:
    os.environ["HALO_DATABASE_URL"] = _DATABASE
_HOME = Path(tempfile.mkdtemp(prefix="halo-tests-")).resolve()
os.environ["HALO_HOME"] = str(_HOME)
os.environ["DJANGO_SETTINGS_MODULE"] = "halo_project.settings"
for _name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
    os.environ.pop(_name, None)
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)

import django  # noqa: E402

django.setup()  # here and not by an ini line, which would read the settings before the home is chosen
del os.environ["DJANGO_SETTINGS_MODULE"]  # a parallel run's processes would inherit it and do just that

# A test run that is told to end (by `timeout`, by CI) ends like one that is interrupted: fixtures stop their processes.
signal.signal(signal.SIGTERM, signal.default_int_handler)

from tests.support.halo_process import HaloFactory, RunningHalo  # noqa: E402
from tests.support.postgres_process import PostgresProcess, postgres_or_skip  # noqa: E402
from tests.support.redis_process import RedisProcess  # noqa: E402

_LONG = ("tests/system/", "tests/admin_ui/", "tests/halo_project/supervisor/", "tests/channels_app/ws/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of whole processes first: in a parallel run the quick ones then fill what is left of the time."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONG))


@pytest.fixture(autouse=True)
def _shared_home_keeps_no_settings() -> Iterator[None]:
    """Keys left in the home that the tests of one process share would choose the model of every test after it."""
    yield
    left = [path for path in (_HOME / "secrets" / "settings.yaml", _HOME / "global" / "models.d") if path.exists()]
    for path in left:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert not left, f"use the fixture `home` for settings of your own; removed {left}"


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisProcess]:
    """The bundled server at the socket that the settings of this test run name; `async_redis()` reaches it."""
    from django.conf import settings

    server = RedisProcess(settings.HALO_HOME.redis_socket, settings.HALO_HOME.redis_data)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresProcess]:
    """A PostgreSQL server with an empty database at `.url`, for HALO_DATABASE_URL."""
    server = postgres_or_skip()
    yield server
    server.remove()


@pytest.fixture
def halo_home(tmp_path: Path):
    """The layout of a fresh home, made ready; not the one of the settings."""
    from halo_project.layout import HomeLayout

    home = HomeLayout(tmp_path / "home")
    home.prepare()
    return home


@pytest.fixture
def home(settings, halo_home):
    """A fresh home in force for one test, in place of the one that all tests of a process share."""
    settings.HALO_HOME = halo_home
    return halo_home


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A fresh folder with a `.halo` in it; the real path."""
    from halo_project.layout import WorkspaceLayout

    root = (tmp_path / "workspace").resolve()
    root.mkdir()
    WorkspaceLayout(root).scaffold()
    return root


@pytest.fixture
def start_halo(tmp_path: Path) -> Iterator[HaloFactory]:
    """`start_halo(NAME="value", …)` starts a real `halo serve`, waits until it is ready, ends it with the test."""
    factory = HaloFactory(tmp_path)
    yield factory
    factory.stop_all()


@pytest.fixture(scope="session")
def halo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHalo]:
    """One `halo serve` shared by the whole test run: do not stop it or kill its children; `start_halo` is for that."""
    factory = HaloFactory(tmp_path_factory.mktemp("halo"), empty_home=True)
    yield factory(HALO_WORKERS="2")
    factory.stop_all()
