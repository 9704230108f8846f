import threading
from pathlib import Path

import pytest

from sessions_app.log.baseline import stamp_of
from sessions_app.log.records import add_record
from sessions_app.log.ui_log import UILog
from sessions_app.log.warm import WarmCache
from tests.sessions_app.log.samples import user_row


@pytest.fixture
def file(tmp_path: Path):
    def make(name: str) -> Path:
        path = tmp_path / name
        path.write_bytes(name.encode())
        return path

    return make


def test_what_was_put_is_taken_once(file):
    cache, path = WarmCache(100), file("a")
    cache.put(path, stamp_of(path), "parsed", 10)
    assert cache.bytes == 10
    assert cache.peek(path) == "parsed"
    assert cache.take(path) == "parsed"
    assert cache.take(path) is None
    assert cache.bytes == 0


@pytest.mark.parametrize("how", ["take", "peek"])
def test_a_changed_or_deleted_file_is_not_served(file, how):
    cache = WarmCache(100)
    for change in (lambda path: path.write_bytes(b"longer"), Path.unlink):
        path = file("a")
        cache.put(path, stamp_of(path), "parsed", 10)
        change(path)
        assert getattr(cache, how)(path) is None
        assert cache.bytes == 0


def test_the_least_recently_used_goes_first(file):
    cache = WarmCache(30)
    paths = [file(name) for name in "abc"]
    for path in paths:
        cache.put(path, stamp_of(path), path.name, 10)
    assert cache.peek(paths[0]) == "a"
    other = file("d")
    cache.put(other, stamp_of(other), "d", 15)
    assert [cache.peek(path) for path in (*paths, other)] == ["a", None, None, "d"]
    assert cache.bytes == 25


def test_too_big_or_without_a_file_is_not_kept_and_replaces_nothing_stale(file):
    cache, path = WarmCache(30), file("a")
    cache.put(path, stamp_of(path), "old", 10)
    cache.put(path, stamp_of(path), "new", 31)
    assert cache.take(path) is None
    cache.put(path, None, "none", 1)
    assert cache.take(path) is None
    assert cache.bytes == 0


def test_put_again_and_drop_keep_the_count_right(file):
    cache, path = WarmCache(30), file("a")
    cache.put(path, stamp_of(path), "one", 10)
    cache.put(path, stamp_of(path), "two", 20)
    assert cache.bytes == 20
    cache.drop(path)
    cache.drop(path)
    assert cache.bytes == 0


def test_a_log_object_resumes_from_the_cache_and_appends(tmp_path):
    path = tmp_path / "s.ui.jsonl"
    path.write_bytes(add_record(user_row("m_1")))
    log = UILog(path)
    cache = WarmCache(1000)
    cache.put(path, log.stamp, (log, log.load()), log.size)
    assert cache.take(path) is None  # it was put before the load: no stamp
    cache.put(path, log.stamp, log, log.size)
    resumed = cache.take(path)
    assert resumed is log
    assert not resumed.write([add_record(user_row("m_2"))], list).rewrote


def test_threads_share_it(file):
    cache = WarmCache(50)
    paths = [file(f"f{number}") for number in range(8)]
    stamps = {path: stamp_of(path) for path in paths}
    errors: list[Exception] = []

    def work() -> None:
        try:
            for round_number in range(300):
                path = paths[round_number % len(paths)]
                cache.put(path, stamps[path], path.name, 10)
                taken = cache.take(paths[(round_number * 3) % len(paths)])
                assert taken is None or taken.startswith("f")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for path in paths:
        cache.drop(path)
    assert cache.bytes == 0
