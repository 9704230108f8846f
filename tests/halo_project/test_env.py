"""What each variable may hold, what it becomes, and the one line for what it may not hold."""

from pathlib import Path

import pytest

from halo_project.env import read_env
from halo_project.errors import ConfigurationError

SECRET = "hunter2"


def env(**values: str):
    return read_env({"HALO_HOME": "/tmp/some-home", **values})


def test_defaults():
    found = env()
    assert (found.host, found.port, found.log_level) == ("127.0.0.1", 9527, "INFO")
    assert (found.shell_timeout_s, found.web_fetch_timeout_s, found.model_timeout_s) == (120, 10, 1800)
    assert (found.worker_processes, found.turn_slots, found.time_scale) == (2, 32, 1.0)
    assert found.home == Path("/tmp/some-home")
    assert found.workspace == Path("/tmp/some-home/workspace")
    assert found.password is found.redis_url is found.database_url is found.badge is None
    assert found.allowed_hosts == found.cors_origins == ()


def test_home_is_below_the_users_home_by_default(monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    assert read_env({}).home == Path("/home/someone/.halo")


@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("HALO_HOME", "~/x", "home", Path("~/x").expanduser()),
        ("HALO_HOME", "a/../b", "home", Path.cwd() / "b"),
        ("HALO_WORKSPACE", "/srv/work", "workspace", Path("/srv/work")),
        ("HALO_PORT", "1", "port", 1),
        ("HALO_PORT", " 65535 ", "port", 65535),
        ("HALO_HOST", "0.0.0.0", "host", "0.0.0.0"),
        ("HALO_HOST", "[::1]", "host", "::1"),
        ("HALO_PASSWORD", SECRET, "password", SECRET),
        ("HALO_PASSWORD", "", "password", None),
        ("HALO_REDIS_URL", "redis://:p@host:6379/1", "redis_url", "redis://:p@host:6379/1"),
        ("HALO_REDIS_URL", "unix:///run/r.sock", "redis_url", "unix:///run/r.sock"),
        ("HALO_DATABASE_URL", "postgres://u:p@h/db", "database_url", "postgres://u:p@h/db"),
        ("HALO_DATABASE_URL", "postgresql:///db?host=/run/pg", "database_url", "postgresql:///db?host=/run/pg"),
        ("HALO_ALLOWED_HOSTS", "a.example, .b.example,[::1]", "allowed_hosts", ("a.example", ".b.example", "[::1]")),
        (
            "HALO_CORS_ORIGINS",
            "https://a.example,http://b:8080",
            "cors_origins",
            ("https://a.example", "http://b:8080"),
        ),
        ("HALO_SHELL_TIMEOUT", "0.5", "shell_timeout_s", 0.5),
        ("HALO_WEB_FETCH_TIMEOUT", "30", "web_fetch_timeout_s", 30),
        ("HALO_MODEL_TIMEOUT", "60", "model_timeout_s", 60),
        ("HALO_LOG_LEVEL", "debug", "log_level", "DEBUG"),
        ("HALO_LOG_LEVEL", "warn", "log_level", "WARNING"),
        ("HALO_BADGE", "staging", "badge", "staging"),
        ("HALO_TIME_SCALE", ".1", "time_scale", 0.1),
        ("HALO_WORKERS", "3", "worker_processes", 3),
        ("HALO_TURN_SLOTS", "8", "turn_slots", 8),
    ],
)
def test_values(name, value, field, expected):
    assert getattr(env(**{name: value}), field) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HALO_HOME", "a\0b"),
        ("HALO_HOME", "~no-such-user-here/x"),
        ("HALO_PORT", "0"),
        ("HALO_PORT", "65536"),
        ("HALO_PORT", "-1"),
        ("HALO_PORT", "80a"),
        ("HALO_PORT", "٣"),
        ("HALO_PORT", "9" * 5000),
        ("HALO_HOST", "two words"),
        ("HALO_HOST", "http://x"),
        ("HALO_REDIS_URL", f"http://:{SECRET}@host"),
        ("HALO_REDIS_URL", f"redis://:{SECRET}@host:port"),
        ("HALO_REDIS_URL", "redis://"),
        ("HALO_REDIS_URL", "just-a-name"),
        ("HALO_DATABASE_URL", f"mysql://u:{SECRET}@h/db"),
        ("HALO_DATABASE_URL", f"postgres://u:{SECRET}@[h/db"),
        ("HALO_ALLOWED_HOSTS", "https://a.example"),
        ("HALO_ALLOWED_HOSTS", "a.example:80"),
        ("HALO_CORS_ORIGINS", "*"),
        ("HALO_CORS_ORIGINS", "a.example"),
        ("HALO_CORS_ORIGINS", "https://a.example/path"),
        ("HALO_SHELL_TIMEOUT", "0"),
        ("HALO_SHELL_TIMEOUT", "nan"),
        ("HALO_WEB_FETCH_TIMEOUT", "1e3"),
        ("HALO_MODEL_TIMEOUT", "-5"),
        ("HALO_LOG_LEVEL", "loud"),
        ("HALO_TIME_SCALE", "inf"),
        ("HALO_WORKERS", "0"),
        ("HALO_WORKERS", "1.5"),
        ("HALO_TURN_SLOTS", "many"),
    ],
)
def test_a_bad_value_is_one_line_that_names_the_variable_and_tells_no_secret(name, value):
    with pytest.raises(ConfigurationError) as refusal:
        env(**{name: value})
    assert name in refusal.value.message
    assert "\n" not in refusal.value.message and len(refusal.value.message) < 250
    assert SECRET not in refusal.value.message


def test_secrets_are_not_in_the_repr():
    urls = {"HALO_REDIS_URL": f"redis://:{SECRET}@h", "HALO_DATABASE_URL": f"postgres://u:{SECRET}@h/d"}
    assert SECRET not in repr(env(HALO_PASSWORD=SECRET, OPENAI_API_KEY=SECRET, **urls))


def test_lookup_finds_any_variable_and_takes_empty_for_unset():
    found = env(OPENAI_API_KEY="k", EMPTY="")
    assert (found.lookup("OPENAI_API_KEY"), found.lookup("EMPTY"), found.lookup("ABSENT")) == ("k", None, None)


def test_the_environment_is_read_in_one_module_only():
    """Child processes inherit it whole, which `env.child_environment` does; naming the settings module is a write.

    `search_ripgrep` is such a child, with nothing but the standard library, and hands on what it was given.
    """
    root = Path(__file__).resolve().parents[2]
    readers = {
        path.relative_to(root).as_posix()
        for package in ("halo_project", "sessions_app", "agents_app", "channels_app", "cron_app", "admin_ui")
        for path in (root / package).rglob("*.py")
        for line in path.read_text("utf-8").split("\n")
        if ("os.environ" in line or "getenv(" in line) and "setdefault(" not in line and "`os.environ`" not in line
    }
    handed_on = {"agents_app/tools/search_ripgrep.py"}
    assert readers <= {"halo_project/env.py", "agents_app/tools/environment.py"} | handed_on
