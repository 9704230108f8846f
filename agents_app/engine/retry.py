"""Which failed model calls are tried again, and after how long. Pure; randomness and the time scale are passed in."""

import random
from dataclasses import dataclass

from agents_app.runtimes.errors import ModelError

_BASE_S = {"throttled": 2.0, "transient": 2.0, "network": 1.0}
_CAP_S = 60.0
_JITTER_S = 1.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `attempts` tries of one call; `scale` shortens the waits in tests."""

    attempts: int = 5
    scale: float = 1.0

    def delay(self, error: ModelError, attempt: int) -> float | None:
        """Seconds before try number `attempt` + 1 (attempt counts from 1), or None when the error is final."""
        base = _BASE_S.get(error.kind)
        if base is None or attempt >= self.attempts:
            return None
        wait: float = min(base * 2 ** (attempt - 1), _CAP_S)
        asked = min(error.retry_after_s or 0.0, _CAP_S)  # what the vendor asked for, when that is longer
        return (max(wait, asked) + random.uniform(0, _JITTER_S)) * self.scale
