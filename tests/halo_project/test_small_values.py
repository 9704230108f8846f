"""The small pure modules: host names, Redis addresses, the version of the static tree, log lines."""

import logging
import os

import pytest

from halo_project.allowed_hosts import allowed_host_names
from halo_project.asset_version import tree_version
from halo_project.bundled_redis import server_command
from halo_project.env import read_env
from halo_project.log_format import UtcFormatter
from halo_project.redis_urls import celery_broker_url


@pytest.mark.parametrize(
    ("env", "extra"),
    [
        ({}, []),
        ({"HALO_HOST": "0.0.0.0"}, []),
        ({"HALO_HOST": "::"}, []),
        ({"HALO_HOST": "192.0.2.7"}, ["192.0.2.7"]),
        ({"HALO_HOST": "2001:db8::1"}, ["[2001:db8::1]"]),
        ({"HALO_ALLOWED_HOSTS": "halo.example"}, ["halo.example"]),
    ],
)
def test_host_names(env, extra):
    assert allowed_host_names(read_env({"HALO_HOME": "/h", **env})) == ["localhost", "127.0.0.1", "[::1]", *extra]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("unix:///run/r.sock", "redis+socket:///run/r.sock?virtual_host=0"),
        ("unix:///run/r.sock?db=3", "redis+socket:///run/r.sock?virtual_host=3"),
        ("redis://:p@h:1/2", "redis://:p@h:1/2"),
        ("rediss://h", "rediss://h?ssl_cert_reqs=required"),
        ("rediss://h?ssl_cert_reqs=none", "rediss://h?ssl_cert_reqs=none"),
    ],
)
def test_redis_address_for_celery(url, expected):
    assert celery_broker_url(url) == expected


def test_the_tree_version_follows_every_change(tmp_path):
    seen = {tree_version(tmp_path / "absent"), tree_version(tmp_path)}
    assert len(seen) == 1
    file = tmp_path / "js" / "a.js"
    file.parent.mkdir()
    file.write_text("1")
    seen.add(tree_version(tmp_path))
    os.utime(file, ns=(1, 1))
    seen.add(tree_version(tmp_path))
    file.rename(tmp_path / "b.js")
    seen.add(tree_version(tmp_path))
    assert len(seen) == 4


def test_log_times_are_utc():
    record = logging.makeLogRecord({"name": "n", "levelname": "INFO", "msg": "hello", "created": 0})
    assert UtcFormatter().format(record) == "1970-01-01T00:00:00Z INFO n: hello"


def test_the_bundled_server_keeps_its_data_and_listens_on_no_port(tmp_path):
    command = " ".join(server_command(tmp_path / "r.sock", tmp_path))
    assert "--port 0 " in command and "--appendonly yes" in command and "--maxmemory-policy noeviction" in command
