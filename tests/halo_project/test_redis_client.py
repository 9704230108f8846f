"""Clients of Redis: keys of this installation, one client per loop, no read timeout, and a restart that is outlived."""

import asyncio
import time

import pytest

from halo_project.redis_client import async_redis, key, sync_redis


def test_keys_begin_with_the_installation(settings):
    assert key("tree", "abc", 7) == f"halo:{settings.HALO_HOME.installation_id()}:tree:abc:7"


async def test_one_client_per_loop(redis_server):
    assert async_redis() is async_redis()
    await async_redis().set(key("test"), "x")
    assert await async_redis().get(key("test")) == b"x"


def test_another_loop_has_another_client(redis_server):
    async def client():
        found = async_redis()
        await found.ping()
        await found.aclose()
        return found

    assert asyncio.run(client()) is not asyncio.run(client())


async def test_a_blocking_read_may_last_longer_than_the_librarys_default_timeout(redis_server):
    started = time.monotonic()
    assert await async_redis().blpop([key("nothing")], timeout=6) is None
    assert time.monotonic() - started >= 5.5


async def test_many_at_once_wait_for_a_connection_and_do_not_fail(redis_server):
    answers = await asyncio.gather(*(async_redis().incr(key("count")) for _ in range(500)))
    assert max(answers) - min(answers) == 499


@pytest.mark.parametrize("flavour", ["sync", "async"])
async def test_C12_commands_outlive_a_restart_of_the_server(redis_server, flavour):
    await async_redis().set(key("kept"), "x")
    await asyncio.sleep(1.2)  # written to disk within a second
    sync_redis().ping()
    redis_server.kill()
    redis_server.start()
    if flavour == "sync":
        assert sync_redis().get(key("kept")) == b"x"
    else:
        assert await async_redis().get(key("kept")) == b"x"


def test_another_home_has_keys_of_its_own(settings, halo_home):
    before = key("a")
    settings.HALO_HOME = halo_home
    assert key("a") != before and halo_home.installation_id() in key("a")


def test_another_address_has_a_client_of_its_own(settings):
    before = sync_redis()
    settings.HALO_REDIS_URL = "unix:///nowhere/r.sock"
    assert sync_redis() is not before
