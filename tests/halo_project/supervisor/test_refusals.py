"""What `halo serve` refuses: one clear line, no traceback, no process left, an exit code that says which kind."""

import contextlib
import socket
import sqlite3

import pytest

from tests.support.halo_process import free_port


def refused(halo, code: int, *parts: str) -> str:
    """Asserts how it ended, and returns its one line."""
    assert halo.wait(120) == code, halo.stderr
    assert "Traceback" not in halo.stderr and halo.stdout == ""
    lines = [line for line in halo.stderr.split("\n") if line]
    assert len(lines) == 1, halo.stderr
    for part in ("halo: ", *parts):
        assert part in lines[0]
    return lines[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HALO_PORT", "abc"),
        ("HALO_LOG_LEVEL", "loud"),
        ("HALO_REDIS_URL", "nonsense"),
        ("HALO_WORKSPACE", "/nowhere/x"),
    ],
)
def test_a_bad_value(start_halo, name, value):
    refused(start_halo.launch(**{name: value}), 2, name)


def test_the_root_as_workspace(start_halo):
    refused(start_halo.launch(HALO_WORKSPACE="/"), 2, "HALO_WORKSPACE", "root")


def test_a_workspace_whose_halo_folder_is_the_home(start_halo, tmp_path):
    launched = start_halo.launch(HALO_HOME=str(tmp_path / ".halo"), HALO_WORKSPACE=str(tmp_path))
    refused(launched, 2, "HALO_WORKSPACE", "the installation's own files")


def test_a_port_in_use(start_halo):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        refused(start_halo.launch(HALO_PORT=port), 1, port, "HALO_PORT")


def test_an_address_that_is_not_ours(start_halo):
    refused(start_halo.launch(HALO_HOST="192.0.2.1"), 1, "192.0.2.1")


def test_a_home_that_is_a_file(start_halo, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    refused(start_halo.launch(HALO_HOME=str(file)), 2, "HALO_HOME", str(file))


def test_a_redis_that_does_not_answer(start_halo):
    refused(start_halo.launch(HALO_REDIS_URL=f"redis://:hunter2@127.0.0.1:{free_port()}/0"), 1, "HALO_REDIS_URL")


def test_a_database_that_does_not_answer(start_halo):
    url = f"postgres://halo:hunter2@127.0.0.1:{free_port()}/halo"
    assert "hunter2" not in refused(start_halo.launch(HALO_DATABASE_URL=url), 1, "HALO_DATABASE_URL")


def test_something_else_in_the_place_of_redis_and_database(start_halo):
    """A port that takes connections and never answers."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        redis = start_halo.launch(HALO_REDIS_URL=f"redis://:hunter2@127.0.0.1:{port}/0")
        database = start_halo.launch(HALO_DATABASE_URL=f"postgres://halo:hunter2@127.0.0.1:{port}/halo")
        assert "hunter2" not in refused(redis, 1, "HALO_REDIS_URL")
        assert "hunter2" not in refused(database, 1, "HALO_DATABASE_URL")


def test_a_database_file_that_is_none(start_halo, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "halo.sqlite3").write_bytes(b"this is no database" * 1000)
    refused(start_halo.launch(HALO_HOME=str(home)), 1, "halo.sqlite3")


def test_T6_a_database_that_a_newer_release_changed(start_halo, tmp_path):
    home = tmp_path / "home"
    first = start_halo.launch(HALO_HOME=str(home))
    first.wait_until_ready()
    first.stop()
    with contextlib.closing(sqlite3.connect(home / "halo.sqlite3")) as database:
        row = ("sessions_app", "0099_future", "2030-01-01 00:00:00")
        database.execute("INSERT INTO django_migrations (app, name, applied) VALUES (?, ?, ?)", row)
        database.commit()
    refused(start_halo.launch(HALO_HOME=str(home)), 1, "newer Halo", "sessions_app 0099_future", "halo.sqlite3")


def test_a_second_serve_on_the_same_home(halo_server, start_halo):
    line = refused(start_halo.launch(HALO_HOME=str(halo_server.home.home)), 1, "already runs", str(halo_server.pid))
    assert str(halo_server.home.home) in line
    assert halo_server.health()[0] == 200
