"""Five wrong attempts in fifteen minutes, also when they arrive at once and from several threads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from channels_app.auth.lockout import MAX_FAILURES, WINDOW, LockedOut, check_secret, prune, refuse_if_locked
from channels_app.models import LoginFailure

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DOOR, ADDRESS = "login", "192.0.2.7"


def wrong() -> bool:
    return False


def right() -> bool:
    return True


def fail(times: int, at: datetime = NOW, door: str = DOOR, address: str = ADDRESS) -> None:
    for _ in range(times):
        assert check_secret(door, address, at, wrong) is False


def never() -> bool:
    raise AssertionError("the secret was compared although the door is shut")


@pytest.mark.django_db
class TestOneByOne:
    def test_the_sixth_attempt_is_refused_unseen_even_when_right(self) -> None:
        fail(MAX_FAILURES)
        with pytest.raises(LockedOut) as refused:
            check_secret(DOOR, ADDRESS, NOW, never)
        assert refused.value.retry_after == WINDOW.total_seconds()
        assert refused.value.message == "Too many wrong attempts from your address. Try again in 15 minutes."

    def test_a_right_secret_forgets_the_wrong_ones(self) -> None:
        fail(MAX_FAILURES - 1)
        assert check_secret(DOOR, ADDRESS, NOW, right) is True
        fail(MAX_FAILURES)

    def test_the_window_slides(self) -> None:
        for minute in range(0, 20, 4):  # 0, 4, 8, 12, 16: never five within fifteen minutes
            fail(1, NOW + timedelta(minutes=minute))
        assert check_secret(DOOR, ADDRESS, NOW + timedelta(minutes=16), wrong) is False  # 4, 8, 12, 16, 16
        with pytest.raises(LockedOut) as refused:
            check_secret(DOOR, ADDRESS, NOW + timedelta(minutes=17), never)
        assert refused.value.retry_after == 2 * 60  # until minute 4 leaves the window
        assert check_secret(DOOR, ADDRESS, NOW + timedelta(minutes=19, seconds=1), right) is True

    def test_attempts_at_a_shut_door_do_not_keep_it_shut(self) -> None:
        fail(MAX_FAILURES)
        for minute in range(1, 15):
            with pytest.raises(LockedOut):
                check_secret(DOOR, ADDRESS, NOW + timedelta(minutes=minute), never)
        assert check_secret(DOOR, ADDRESS, NOW + WINDOW, right) is True

    def test_doors_and_addresses_are_counted_apart(self) -> None:
        fail(MAX_FAILURES)
        assert check_secret(DOOR, "198.51.100.9", NOW, right) is True
        assert check_secret("web-token", ADDRESS, NOW, right) is True
        with pytest.raises(LockedOut):
            refuse_if_locked(DOOR, ADDRESS, NOW)

    def test_a_comparison_that_failed_itself_does_not_count(self) -> None:
        def broken() -> bool:
            raise OSError("the password file cannot be read")

        for _ in range(MAX_FAILURES + 1):
            with pytest.raises(OSError, match="cannot be read"):
                check_secret(DOOR, ADDRESS, NOW, broken)
        assert check_secret(DOOR, ADDRESS, NOW, right) is True

    def test_a_clock_that_went_back_shuts_nobody_out_for_longer(self) -> None:
        fail(MAX_FAILURES, NOW + timedelta(days=3))
        with pytest.raises(LockedOut) as refused:
            check_secret(DOOR, ADDRESS, NOW, never)
        assert refused.value.retry_after <= WINDOW.total_seconds()

    def test_old_rows_are_pruned_when_a_new_address_comes(self) -> None:
        fail(1, NOW, address="198.51.100.1")
        fail(1, NOW + timedelta(minutes=14), address="198.51.100.2")
        fail(1, NOW + timedelta(minutes=16), address="198.51.100.3")
        assert set(LoginFailure.objects.values_list("address", flat=True)) == {"198.51.100.2", "198.51.100.3"}
        assert prune(NOW + timedelta(hours=1)) == 2


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    def at_once(self, count: int, matches) -> list[object]:
        start = threading.Barrier(count)

        def one(_: int) -> object:
            start.wait()
            try:
                return check_secret(DOOR, ADDRESS, NOW, matches)
            except LockedOut as refused:
                return refused
            finally:
                connection.close()

        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(one, range(count)))

    def test_twenty_wrong_ones_get_five_comparisons(self) -> None:
        compared: list[int] = []

        def count_and_refuse() -> bool:
            compared.append(1)
            return False

        answers = self.at_once(20, count_and_refuse)
        assert len(compared) == MAX_FAILURES
        assert answers.count(False) == MAX_FAILURES
        assert sum(isinstance(answer, LockedOut) for answer in answers) == 20 - MAX_FAILURES

    def test_twenty_right_ones_are_all_let_in(self) -> None:
        assert self.at_once(20, right) == [True] * 20

    def test_processes_count_together(self) -> None:
        """Without the turnstile of one process, as if each thread were a process of its own: the rows alone decide."""
        from channels_app.auth import lockout

        compared: list[int] = []
        start = threading.Barrier(20)

        def one(_: int) -> None:
            start.wait()
            try:
                lockout._count_attempt(DOOR, ADDRESS, NOW)
                compared.append(1)
            except LockedOut:
                pass
            finally:
                connection.close()

        with ThreadPoolExecutor(20) as pool:
            list(pool.map(one, range(20)))
        assert len(compared) == MAX_FAILURES
