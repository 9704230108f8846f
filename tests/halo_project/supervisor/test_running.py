"""A server that runs: what it printed, what it answers, who belongs to it."""

import asyncio
import http.client
import re
import stat
import urllib.request

import psutil
import websockets

from halo_project.layout import HomeLayout


def test_the_block_says_what_a_person_needs(halo_server):
    assert halo_server.url in halo_server.stdout
    assert str(halo_server.workspace) in halo_server.stdout
    assert "rehearsal agent" in halo_server.stdout
    assert halo_server.password not in halo_server.stdout
    assert halo_server.stderr == ""


def test_health_names_every_part(halo_server):
    status, body = halo_server.health()
    assert status == 200
    assert body["uptime"] >= 0 and re.match(r"2\.", body["version"])
    rest = {name: body[name] for name in ("status", "database", "redis", "workers")}
    assert rest == {"status": "ok", "database": "ok", "redis": "ok", "workers": {"alive": 2, "expected": 2}}


def test_every_process_is_there_in_a_session_of_its_own(halo_server):
    children = halo_server.children()
    assert set(children) == {"redis", "web", "worker-1", "worker-2", "beat"}
    for pid in children.values():
        assert psutil.Process(pid).is_running()
    assert "worker-1" in halo_server.logs() and "Traceback" not in halo_server.logs()


def test_what_is_written_is_private(halo_server):
    home = halo_server.home
    for path in (home.redis_socket, home.server_lock, home.server_state, home.logs / "web.log", home.django_key_file):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_no_server_names_itself(halo_server):
    with urllib.request.urlopen(halo_server.url + "/api/health") as answer:
        assert answer.headers["Server"] is None
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]


def test_a_foreign_host_name_is_refused(halo_server):
    connection = http.client.HTTPConnection("127.0.0.1", halo_server.port, timeout=10)
    connection.request("GET", "/api/health", headers={"Host": "evil.example"})
    assert connection.getresponse().status == 400


def test_health_is_cheap(halo_server):
    """Many at once are all answered; the hard figure is a bench's business."""

    async def ask_often() -> list[int]:
        return await asyncio.gather(*(asyncio.to_thread(lambda: halo_server.health()[0]) for _ in range(50)))

    assert set(asyncio.run(ask_often())) == {200}


async def test_a_socket_without_a_login_is_refused_and_other_addresses_too(halo_server):
    for address in ("/ws", "/elsewhere"):
        try:
            async with websockets.connect(f"ws://127.0.0.1:{halo_server.port}{address}"):
                raise AssertionError(f"{address} was accepted")
        except websockets.InvalidStatus as refusal:
            assert refusal.response.status_code in (403, 404)


def test_T6_a_settings_file_that_cannot_be_read_is_named_at_the_start(start_halo, tmp_path):
    """Beside a version file nested without end, which is made anew."""
    home = HomeLayout(tmp_path / "home")
    home.prepare()
    home.settings_yaml.write_text("general:\n  agent: [\n")
    (home.global_dir / ".template-version").write_text("[" * 100_000)
    halo = start_halo.launch(HALO_HOME=str(home.home))
    halo.wait_until_ready()
    assert f"{home.settings_yaml}, line 3: this is not valid YAML" in halo.stdout
    assert "Traceback" not in halo.logs()
