"""The door from coroutines to the database: whole transactions, lasting connections, errors that arrive."""

import asyncio
import threading

import pytest
from django.db import connection, transaction

from halo_project.clock import utcnow
from halo_project.database import close_request_connections, db, db_soon
from sessions_app.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)


def add(path: str) -> int:
    with transaction.atomic():
        return Workspace.objects.create(path=path, created_at=utcnow()).pk


async def test_what_one_call_wrote_the_next_one_reads():
    pk = await db(add, "/a")
    assert await db(lambda: Workspace.objects.get(pk=pk).path) == "/a"


async def test_keyword_arguments_and_exceptions_pass_through():
    def fail(*, reason: str) -> None:
        raise LookupError(reason)

    with pytest.raises(LookupError, match="because"):
        await db(fail, reason="because")


async def test_a_failing_transaction_leaves_nothing():
    def half() -> None:
        with transaction.atomic():
            Workspace.objects.create(path="/half", created_at=utcnow())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await db(half)
    assert not await db(Workspace.objects.filter(path="/half").exists)


async def test_hundreds_of_writers_share_one_lasting_connection():
    connections = set()

    def write(number: int) -> None:
        add(f"/{number}")
        connections.add((threading.get_ident(), id(connection.connection)))

    await asyncio.gather(*(db(write, number) for number in range(300)))
    assert await db(Workspace.objects.count) == 300
    assert len(connections) == 1


async def test_a_cancelled_caller_does_not_cut_the_transaction():
    started, may_end = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            Workspace.objects.create(path="/slow", created_at=utcnow())
            started.set()
            may_end.wait(10)

    task = asyncio.create_task(db(slow))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    may_end.set()
    assert await db(Workspace.objects.filter(path="/slow").exists)


async def test_the_end_of_a_request_closes_its_connection_and_not_the_lasting_one():
    def request_thread() -> bool:
        Workspace.objects.count()
        close_request_connections()
        return connection.connection is None

    assert await asyncio.to_thread(request_thread)

    def lasting_thread() -> bool:
        Workspace.objects.count()
        close_request_connections()
        return connection.connection is not None

    assert await db(lasting_thread)


async def test_sqlite_is_set_up_as_measured():
    def pragma(name: str) -> object:
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA {name}")
            return cursor.fetchone()[0]

    found = [await db(pragma, name) for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")]
    assert found == ["wal", 1, 20000, 1]


def test_what_has_no_loop_may_be_done_soon(caplog) -> None:
    """On the database threads, and what goes wrong is in the log."""
    done = threading.Event()
    names: list[str] = []

    def work(word: str) -> None:
        names.append(f"{threading.current_thread().name} {word}")
        done.set()

    def fails() -> None:
        raise ValueError("this one cannot be done")

    db_soon(fails)
    db_soon(work, "hello")
    assert done.wait(20)
    assert names[0].startswith("halo-db") and names[0].endswith("hello")
    assert "fails failed" in caplog.text and "this one cannot be done" in caplog.text
