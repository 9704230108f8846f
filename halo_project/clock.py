"""Clocks. Wall time is UTC-aware; lease belief runs on a clock that does not stop while the machine sleeps."""

import sys
import time
from datetime import UTC, datetime

# CLOCK_BOOTTIME counts through suspend on Linux; CLOCK_MONOTONIC does so on macOS.
_SLEEPLESS = getattr(time, "CLOCK_BOOTTIME", None) if sys.platform == "linux" else None
LAST_MS = 253_402_300_799_000  # the year 9999, where datetimes end


def utcnow() -> datetime:
    return datetime.now(UTC)


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def sleepless() -> float:
    """Seconds on a monotonic clock that also counts the time a suspended machine slept."""
    if _SLEEPLESS is not None:
        return time.clock_gettime(_SLEEPLESS)
    return time.monotonic()


def iso_ms(ms: int) -> str:
    """`2026-09-12T15:17:44.153Z`: the form of arrival stamps in the session files."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"
