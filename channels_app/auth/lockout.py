"""Five wrong passwords within fifteen minutes from one address close a door to it for a while.

`check_secret` is the one way to compare a secret that a stranger sent. What the secret is, the caller knows.
An attempt is counted before the comparison and forgiven after a right one: so however many requests arrive at once, no
more than `MAX_FAILURES` comparisons are made for wrong ones.
"""

import math
import threading
import zlib
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from django.db import transaction

from channels_app.models import LoginFailure
from halo_project.errors import HaloError

MAX_FAILURES = 5
WINDOW = timedelta(minutes=15)
PRUNE_AT_ONCE = 1000

# Attempts of one address go one after the other within a process. Otherwise ten scripts that sign in at once with the
# right password would see each other's not yet forgiven attempts and be refused.
_TURNSTILES = [threading.Lock() for _ in range(64)]


class LockedOut(HaloError):
    """Too many failures from this address; raised before the secret is looked at. `retry_after` in seconds."""

    code = "locked_out"
    status = 429

    def __init__(self, retry_after: int):
        minutes = math.ceil(retry_after / 60)
        unit = "minute" if minutes == 1 else "minutes"
        super().__init__(f"Too many wrong attempts from your address. Try again in {minutes} {unit}.")
        self.retry_after = retry_after


def check_secret(door: str, address: str, now: datetime, matches: Callable[[], bool]) -> bool:
    """What `matches` says, counted per door and address. Raises LockedOut, without calling it, when the door is shut.

    When `matches` itself fails, nothing was compared and nothing counts.
    """
    refuse_if_locked(door, address, now)
    with _turnstile(door, address):
        _count_attempt(door, address, now)
        try:
            right = matches()
        except BaseException:
            _take_back_attempt(door, address, now)
            raise
        if right:
            forgive(door, address)
        return right


def refuse_if_locked(door: str, address: str, now: datetime) -> None:
    """Raises LockedOut when the door is shut for this address; reads only."""
    for moments in LoginFailure.objects.filter(door=door, address=address).values_list("moments", flat=True):
        _refuse(_recent(moments, now), now)


def forgive(door: str, address: str) -> None:
    """Forget the failures of an address after a right secret."""
    LoginFailure.objects.filter(door=door, address=address).update(moments=[])


def prune(now: datetime) -> int:
    """Delete a bounded number of rows that no longer count. Returns how many."""
    with transaction.atomic():
        # Rows another process is pruning or counting on are left to it: waiting for them in any order could deadlock.
        stale = LoginFailure.objects.select_for_update(skip_locked=True).filter(last_at__lt=now - WINDOW)
        deleted, _ = LoginFailure.objects.filter(
            pk__in=list(stale.values_list("pk", flat=True)[:PRUNE_AT_ONCE])
        ).delete()
    return deleted


def _count_attempt(door: str, address: str, now: datetime) -> None:
    """Add one failure in advance. Raises LockedOut when there are enough already."""
    with transaction.atomic():
        row, created = LoginFailure.objects.select_for_update().get_or_create(
            door=door, address=address, defaults={"moments": [_ms(now)], "last_at": now}
        )
        if not created:
            recent = _recent(row.moments, now)
            _refuse(recent, now)
            row.moments, row.last_at = [*recent, _ms(now)], now
            row.save(update_fields=["moments", "last_at"])
    if created:
        prune(now)


def _take_back_attempt(door: str, address: str, now: datetime) -> None:
    with transaction.atomic():
        row = LoginFailure.objects.select_for_update().filter(door=door, address=address).first()
        if row is not None and _ms(now) in row.moments:
            row.moments.remove(_ms(now))
            row.save(update_fields=["moments"])


def _refuse(recent: list[int], now: datetime) -> None:
    if len(recent) >= MAX_FAILURES:
        until = recent[-MAX_FAILURES] + _ms_of(WINDOW)
        raise LockedOut(max(1, min(math.ceil((until - _ms(now)) / 1000), int(WINDOW.total_seconds()))))


def _recent(moments: Iterable[int], now: datetime) -> list[int]:
    oldest = _ms(now) - _ms_of(WINDOW)
    return [moment for moment in moments if moment > oldest]


def _turnstile(door: str, address: str) -> threading.Lock:
    return _TURNSTILES[zlib.crc32(f"{door} {address}".encode()) % len(_TURNSTILES)]


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _ms_of(span: timedelta) -> int:
    return int(span.total_seconds() * 1000)
