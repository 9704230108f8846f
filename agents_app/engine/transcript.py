"""What the engine needs of the place where words are kept. Pure; `sessions_app.store.SessionStore` is one."""

from typing import Any, Protocol

from sessions_app.events import Event
from sessions_app.raw_history import RawHistory


class Transcript(Protocol):
    """Raw history to read and change, events to emit, and a save that writes both logs in one slice."""

    @property
    def raw(self) -> RawHistory: ...

    @property
    def context_tokens(self) -> int:
        """Tokens that the last model call filled, or an estimate after a compaction."""
        ...

    def emit(self, *events: Event) -> Any: ...

    async def save(self) -> None:
        """Write what is unsaved, waiting while the lease cannot be believed. Raises LeaseLost, OSError."""
        ...

    def unsaved_text(self) -> int:
        """Characters of the streaming reply that the file does not hold."""
        ...
