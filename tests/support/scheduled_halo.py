"""A Halo whose jobs are due every few seconds, on SQLite and on PostgreSQL, and what its runs came to.

The clock is made quick by HALO_CRON_TEST_INTERVAL: every job is due at each multiple of so many seconds.
"""

import contextlib
import itertools
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psutil
import psycopg
import pytest

from tests.support.halo_process import RunningHalo
from tests.support.model_server import ModelReply, ModelServer
from tests.support.postgres_process import PostgresProcess
from tests.support.rest_client import RestClient

INTERVAL_S = 2
PROMPT = "count to three"


class Receiver:
    """A web server on loopback that takes what targets get."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append({"id": self.headers["webhook-id"], **json.loads(body)})
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/in"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def fresh_database(postgres: PostgresProcess) -> str:
    """The URL of a database of its own: jobs that another test left would fire here too."""
    name = f"schedules_{time.time_ns()}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres.url.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", "postgresql"])
def scheduled_halo(request, server: ModelServer, start_halo, receiver: Receiver) -> RunningHalo:
    server.reset()
    server.respond(lambda body: ModelReply(text="one two three"))
    database = {}
    if request.param == "postgresql":
        database["HALO_DATABASE_URL"] = fresh_database(request.getfixturevalue("postgres_server"))
    running = start_halo(
        ANTHROPIC_API_KEY="k",
        ANTHROPIC_BASE_URL=server.url,
        HALO_WORKERS="2",
        HALO_TIME_SCALE="0.2",
        HALO_CRON_TEST_INTERVAL=str(INTERVAL_S),
        **database,
    )
    settings = running.home.settings_yaml
    settings.write_text(f"general:\n  webhook:\n    addresses: ['{receiver.url}']\n")
    return running


def create(api: RestClient, halo: RunningHalo, **fields: Any) -> str:
    given = {"workspacePath": str(halo.workspace), "agentId": "default", "userPrompt": PROMPT, **fields}
    if "runAt" not in given:
        given["schedule"] = "* * * * *"
    return api.post("cron/jobs", given)["id"]


def all_runs(api: RestClient, job_id: str) -> list[dict[str, Any]]:
    """Oldest first."""
    found: list[dict[str, Any]] = []
    before = ""
    while True:
        page = api.get(f"cron/jobs/{job_id}/runs?limit=100{before}")
        found += page["runs"]
        if not page["hasMore"]:
            return found[::-1]
        before = f"&before={page['nextCursor']}"


class Chronicle:
    """The runs of these jobs as they were last seen; the list itself forgets the older ones of a stateless job."""

    def __init__(self, api: RestClient, jobs: list[str]):
        self._api = api
        self._runs: dict[str, dict[str, dict[str, Any]]] = {job_id: {} for job_id in jobs}

    def look(self) -> bool:
        """Whether every run has come to its end."""
        for job_id, known in self._runs.items():
            known |= {run["id"]: run for run in all_runs(self._api, job_id)}
        return all(run["status"] != "running" for known in self._runs.values() for run in known.values())

    def runs(self, job_id: str) -> list[dict[str, Any]]:
        """Oldest first."""
        return [run for _, run in sorted(self._runs[job_id].items())]


def unaccounted(runs: list[dict[str, Any]]) -> list[int]:
    """Due instants (ms) that no run answers, and that did not pass while an older one waited to be answered."""
    step, dues = INTERVAL_S * 1000, [run["due"] for run in runs if run["due"] is not None]
    passed = {run["due"]: run["startedAt"] for run in runs}
    lost = []
    for before, after in itertools.pairwise(dues):
        lost += [due for due in range(before + step, after, step) if due > passed[before]]
    return lost


def kill_one(halo: RunningHalo, name: str) -> None:
    with contextlib.suppress(KeyError, psutil.NoSuchProcess):
        psutil.Process(halo.children()[name]).kill()
