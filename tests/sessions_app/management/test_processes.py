"""The commands as programs: exit codes, a fresh home, a terminal, a running server, eight at once, PostgreSQL."""

import fcntl
import json
import os
import pty
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.sessions_app.legacy_support import write_database, write_session
from tests.support.halo_process import ROOT, clean_environment
from tests.support.legacy_fixtures import contents, copy_of, states

HALO = [sys.executable, "-c", "from halo_project.console import main; main()"]
MIGRATE = ("sessions", "migrate", "v1", "v2")


@pytest.fixture
def fresh(tmp_path: Path) -> HomeLayout:
    return HomeLayout(tmp_path / "fresh-home")


def start(home: HomeLayout, *arguments: str, program: list[str] = HALO, **options) -> "subprocess.Popen[str]":
    environment = clean_environment(HALO_HOME=str(home.home), **options.pop("env", {}))
    outputs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([*program, *arguments], cwd=ROOT, env=environment, text=True, **outputs)


def run(home: HomeLayout, *arguments: str, **options) -> tuple[int, str, str]:
    process = start(home, *arguments, **options)
    out, err = process.communicate(timeout=180)
    return process.returncode, out, err


def rows(home: HomeLayout) -> list[tuple]:
    with closing(sqlite3.connect(home.database)) as database:
        query = "SELECT session_id, title, exchange_count FROM sessions_app_agentsession ORDER BY session_id"
        return database.execute(query).fetchall()


def test_a_rehearsal_in_a_fresh_home_makes_no_database_and_then_it_happens(tmp_path: Path, fresh: HomeLayout) -> None:
    root = copy_of("v1/ws-e", tmp_path)
    write_session(root, "broken").write_text("{")
    before = states(root)
    code, out, err = run(fresh, *MIGRATE, "-w", str(root), "--dry-run")
    assert (code, out) == (1, "Nothing was written. Would be: migrated 4, cleaned 0, skipped 0, failed 1\n"), err
    assert err.startswith("failed default/broken: broken.json is no valid JSON") and err.count("\n") == 1
    assert states(root) == before
    # What every command makes of a home: its folders, Django's key, the installation's id. No database.
    assert set(contents(fresh.home)) == {"secrets/django-key", "secrets/installation-id"}
    code, out, again = run(
        fresh, "migrate-sessions", "v1", "v2", "-w", str(root), program=[sys.executable, "manage.py"]
    )
    assert (code, out) == (1, "migrated 4, cleaned 0, skipped 0, failed 1\n") and again == err
    assert len(rows(fresh)) == 5 - 1
    (root / ".halo/sessions/default/broken.json").unlink()
    assert run(fresh, *MIGRATE, "-w", str(root))[:2] == (0, "migrated 0, cleaned 0, skipped 4, failed 0\n")
    assert run(fresh, "sessions", "check", "-w", str(root))[0] == 0


def test_wrong_words_end_with_2_and_a_wrong_folder_with_1(tmp_path: Path, fresh: HomeLayout) -> None:
    code, _, err = run(fresh, "sessions", "migrate", "v1", "v3", "-w", str(tmp_path))
    assert code == 2 and err == "halo: only v1 v2 is supported: halo sessions migrate v1 v2 -w <workspace>\n"
    code, _, err = run(fresh, *MIGRATE, "-w", str(tmp_path))
    assert code == 1 and err.startswith("halo: ") and "nothing to migrate" in err and err.count("\n") == 1
    assert run(fresh, "sessions")[0] == 2


def test_beside_a_running_server_it_is_refused(workspace: Path, fresh: HomeLayout) -> None:
    """The server holds run/server.lock with a flock and its pid, as the supervisor does."""
    write_session(workspace, "a")
    fresh.prepare()
    before = states(workspace)
    with fresh.server_lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        code, out, err = run(fresh, *MIGRATE, "-w", str(workspace))
    assert (code, out) == (
        1,
        "",
    ) and f"A server is running on this workspace or from this HALO_HOME (process {os.getpid()})" in err
    assert states(workspace) == before


def test_on_a_terminal_a_bar_is_drawn_and_wiped(tmp_path: Path, fresh: HomeLayout) -> None:
    root = copy_of("v1/ws-e", tmp_path)
    controller, terminal = pty.openpty()
    process = start(fresh, *MIGRATE, "-w", str(root), stderr=terminal)
    os.close(terminal)
    drawn = b""
    with suppress(OSError):  # the other end is closed when the program ends
        while piece := os.read(controller, 4096):
            drawn += piece
    os.close(controller)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "migrated 4, cleaned 0, skipped 0, failed 0\n")
    text = drawn.decode()
    assert "[                        ] 0/4 deep-executor/sid_" in text
    assert text.endswith("\r\033[K") and "\n" not in text


def test_eight_at_once_convert_each_session_once(workspace: Path, fresh: HomeLayout) -> None:
    names = [f"s{number:02d}" for number in range(24)]
    write_database(WorkspaceLayout(workspace).legacy_database, [{"id": name, "title": name} for name in names[:12]])
    for name in names:
        write_session(workspace, name, rows=40, title=name)
    assert run(fresh, "sessions", "check", "-w", str(workspace))[0] == 1  # makes the tables
    processes = [start(fresh, *MIGRATE, "-w", str(workspace)) for _ in range(8)]
    results = [(process.communicate(timeout=300), process.returncode) for process in processes]
    assert {code for _, code in results} == {0}, results
    counts = [dict(part.split() for part in out.strip().split(", ")) for (out, _), _ in results]
    assert sum(int(each["migrated"]) for each in counts) == 24
    assert all(int(each["migrated"]) + int(each["skipped"]) == 24 for each in counts), counts
    assert rows(fresh) == [(name, name, 20) for name in names]
    files = contents(WorkspaceLayout(workspace).sessions / "default")
    assert sorted(files) == sorted(f"{name}.{kind}.jsonl" for name in names for kind in ("raw", "ui"))
    assert run(fresh, "sessions", "check", "-w", str(workspace))[0] == 0


def test_a_rehearsal_with_the_database_of_an_older_release(tmp_path: Path, fresh: HomeLayout) -> None:
    root = copy_of("v1/ws-e", tmp_path)
    manage = [sys.executable, "manage.py"]
    assert run(fresh, "migrate", "sessions_app", "0001", "-v", "0", program=manage)[0] == 0
    code, out, err = run(fresh, *MIGRATE, "-w", str(root), "--dry-run")
    assert (code, out) == (0, "Nothing was written. Would be: migrated 4, cleaned 0, skipped 0, failed 0\n"), err


def test_on_postgres_odd_texts_and_ids_come_over(workspace: Path, fresh: HomeLayout, postgres_server) -> None:
    import psycopg

    long_id = ">".join(["r" * 100, "s" * 100, "t" * 120])
    odd = {"title": "a\0b", "description": "c\0d", "reply_to": json.dumps({"s": "\0\ud83d"}), "context_tokens": 2**40}
    sessions = [
        {"id": "odd", "agent_name": "n" * 500, "last_activity_at": "x" * 90, "exchange_count": 2**40, **odd},
        {"id": long_id, "agent_id": "a" * 180},
        {"id": "x" * 600},
    ]
    write_database(WorkspaceLayout(workspace).legacy_database, sessions, [("skill", "s\0" + "e" * 300, "global", 1)])
    write_session(workspace, "odd")
    write_session(workspace, "t" * 120, "a" * 180)
    header = {"title": "nul \0 half \ud83d", "agentName": "\ud83d" * 300, "output": "\0", "lastActivityAt": "y" * 90}
    write_session(workspace, "norow", **header)
    env = {"HALO_DATABASE_URL": postgres_server.url}
    code, out, err = run(fresh, *MIGRATE, "-w", str(workspace), "--dry-run", env=env)
    assert (code, out) == (0, "Nothing was written. Would be: migrated 3, cleaned 0, skipped 0, failed 0\n"), err
    code, out, err = run(fresh, *MIGRATE, "-w", str(workspace), env=env)
    assert (code, out) == (0, "migrated 3, cleaned 0, skipped 0, failed 0\n"), err
    code, out, err = run(fresh, "sessions", "check", "--repair", "-w", str(workspace), env=env)
    assert code == 0, out + err
    name = postgres_server.url.partition("host=")[2]
    query = (
        "SELECT session_id, title FROM sessions_app_agentsession s JOIN sessions_app_workspace w"
        " ON w.id = s.workspace_id WHERE w.path = %s ORDER BY s.id"
    )
    with psycopg.connect(f"host={name} user=halo dbname=postgres") as database:
        found = database.execute(query, (str(workspace),)).fetchall()
    assert found == [("odd", "a\ufffdb"), (long_id, None), ("norow", "nul \ufffd half \ufffd")]
