"""A SessionStore over files in a folder, with a lease that is always believed and nobody who watches."""

from pathlib import Path
from typing import Any

from sessions_app.identifiers import SessionKey
from sessions_app.lease import Lease
from sessions_app.log.paths import SessionPaths
from sessions_app.store import SessionStore, read_logs


class _NoPublisher:
    def put(self, frame: dict[str, Any]) -> None: ...

    def saved(self) -> None: ...


def bare_store(folder: Path) -> SessionStore:
    """Opens `<folder>/s.ui.jsonl` and `s.raw.jsonl` as a worker does."""
    lease = Lease(session_pk=1, run_id="r", generation=1, kind="turn", belief_s=3600)
    logs = read_logs(SessionPaths(folder, "s"), "A")
    return SessionStore(SessionKey(1, "s"), logs, lease, _NoPublisher())  # type: ignore[arg-type]
