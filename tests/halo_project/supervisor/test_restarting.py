"""A crashed child is started again, a few times; one that crashes over and over stops everything and is named."""

import os
import signal
import subprocess
import sys

import psutil
import pytest
import redis

from halo_project.supervisor.watch import MAX_RESTARTS
from tests.support.halo_process import ROOT, clean_environment, still_running


@pytest.mark.parametrize("name", ["web", "worker-1", "beat", "redis"])
def test_a_crashed_child_is_started_again(start_halo, name):
    halo = start_halo()
    before = halo.children()
    halo.kill(name)
    halo.wait_for(lambda: halo.children().get(name) not in (before[name], None))
    halo.wait_until_healthy()
    after = halo.children()
    assert {other: pid for other, pid in after.items() if other != name} == {
        other: pid for other, pid in before.items() if other != name
    }
    assert f"{'redis' if name == 'redis' else name} ended" in halo.stderr


def test_a_restarted_redis_keeps_its_data(start_halo):
    halo = start_halo()
    client = redis.Redis(unix_socket_path=str(halo.home.redis_socket))
    client.set("kept", "x")
    client.execute_command("WAITAOF", 1, 0, 5000)  # on disk
    before = halo.children()["redis"]
    halo.kill("redis")
    halo.wait_for(lambda: halo.children().get("redis") not in (before, None))
    halo.wait_until_healthy()
    assert client.get("kept") == b"x"


def test_health_is_503_while_a_worker_is_missing(start_halo):
    halo = start_halo(HALO_TIME_SCALE="0.5", HALO_WORKERS="2")
    frozen = halo.children()["worker-2"]
    os.kill(frozen, signal.SIGSTOP)
    halo.wait_for(lambda: halo.health()[0] == 503)
    assert halo.health()[1]["status"] == "degraded"
    assert halo.health()[1]["workers"] == {"alive": 1, "expected": 2}
    os.kill(frozen, signal.SIGCONT)
    halo.wait_until_healthy()


def test_health_is_503_while_redis_does_not_answer(start_halo):
    halo = start_halo()
    server = psutil.Process(halo.children()["redis"])
    server.suspend()
    halo.wait_for(lambda: halo.health()[0] == 503)
    assert halo.health()[1]["redis"] == "no answer"
    server.resume()
    halo.wait_until_healthy()


def test_a_crash_loop_stops_everything_and_names_the_child(start_halo):
    halo = start_halo()
    everyone = halo.processes()
    dead: set[int] = set()
    for _ in range(MAX_RESTARTS + 1):
        dead.add(halo.kill("beat", after=dead))
    assert halo.wait() == 1
    last = halo.stderr.strip().split("\n")[-1]
    assert "beat" in last and f"after {MAX_RESTARTS} restarts" in last and "beat.log" in last
    assert still_running(everyone) == []


def test_C12_five_redis_restarts_in_a_row_and_wake_ups_are_taken_again(start_halo):
    halo = start_halo()
    dead: set[int] = set()
    for _ in range(MAX_RESTARTS):
        dead.add(halo.kill("redis", after=dead))
    halo.wait_until_healthy()
    wake_up(halo, times=40)
    queue = f"halo:{halo.home.installation_id()}:turns"
    client = redis.Redis(unix_socket_path=str(halo.home.redis_socket))
    halo.wait_for(lambda: client.llen(queue) == 0, within=30)


def wake_up(halo, times: int) -> None:
    """Put wake-ups into the workers' queue, for a session that does not exist."""
    program = (
        "import django; django.setup()\n"
        "from agents_app.tasks import run_session\n"
        f"for _ in range({times}): run_session.apply_async(args=[999_999_999], queue='turns')\n"
    )
    env = clean_environment(DJANGO_SETTINGS_MODULE="halo_project.settings", **halo.env)
    subprocess.run([sys.executable, "-c", program], env=env, cwd=ROOT, check=True, timeout=120)
