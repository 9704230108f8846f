"""The bus inside one process and one loop: the command line without a server, and tests. Same contract as on Redis."""

import time
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any

from sessions_app.bus import (
    ANY_WORKSPACE,
    RESYNC,
    Entry,
    Frame,
    Mark,
    Trimmed,
    encode_frame,
    ends_session,
    highest_seq,
    parse_id,
)
from sessions_app.bus_follow import MAX_BYTES, MAX_ENTRIES, Follower, Page
from sessions_app.bus_hints import Channel, Listener
from sessions_app.identifiers import SessionKey

KEPT_ENTRIES = 20_000


class _Tree:
    """The kept entries of one session tree, its sessions' marks, and who follows."""

    def __init__(self, kept: int):
        self.entries: deque[Entry] = deque(maxlen=kept)
        self.marks: dict[str, Mark] = {}
        self.last: dict[str, int] = {}
        self.used_at = time.monotonic()

    def newest(self) -> str | None:
        return self.entries[-1].id if self.entries else None


class LocalBus:
    """expire_s: how long a tree's entries outlive its last frame. Use it on one event loop only."""

    def __init__(
        self,
        *,
        expire_s: float = 3600.0,
        kept: int = KEPT_ENTRIES,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
    ):
        self._expire_s = expire_s
        self._kept = kept
        self._bounds = {"max_entries": max_entries, "max_bytes": max_bytes}
        self._trees: dict[str, _Tree] = {}
        self._followers: set[Follower] = set()
        self._listeners: set[Listener] = set()
        self._notices = Channel("notices", lost=(ANY_WORKSPACE, {"type": "session:changed"}))
        self._signals = Channel("signals", lost={"kind": RESYNC})
        self._last_id = (0, 0)

    @property
    def followers(self) -> int:
        return len(self._followers)

    # -- frames ---------------------------------------------------------------------------------------------------

    async def publish(self, key: SessionKey, frames: Sequence[Frame], *, saved_seq: int | None = None) -> None:
        tree = self._tree(key)
        tree.used_at = time.monotonic()
        for frame in frames:
            entry = Entry(self._new_id(), key.hash, encode_frame(frame))
            tree.entries.append(entry)
            for follower in self._followers:
                if follower.session == entry.session:
                    follower.push(entry)
        seq = 0 if ends_session(frames) else saved_seq
        last = 0 if ends_session(frames) else highest_seq(frames)
        if last is not None:
            tree.last[key.hash] = last
        if seq is not None and tree.entries:
            tree.marks[key.hash] = Mark(tree.entries[-1].id, seq)

    async def mark(self, key: SessionKey) -> Mark | None:
        return self._tree(key).marks.get(key.hash)

    def entries(self, key: SessionKey, after: str) -> Follower:
        return Follower(self, key, after, **self._bounds)

    # -- hints ----------------------------------------------------------------------------------------------------

    async def notify(self, workspace_id: int, frame: Frame) -> None:
        self._tell(self._notices, (workspace_id, frame))

    def notices(self) -> Listener:
        return self._listen(self._notices)

    async def signal(self, message: dict[str, Any]) -> None:
        self._tell(self._signals, message)

    def signals(self) -> Listener:
        return self._listen(self._signals)

    async def close(self) -> None:
        for follower in list(self._followers):
            follower.fail(Trimmed("The event stream was closed."))
        for listener in list(self._listeners):
            await listener.aclose()

    # -- what a follower asks ---------------------------------------------------------------------------------------

    async def join(self, follower: Follower) -> None:
        self._followers.add(follower)

    def leave(self, follower: Follower) -> None:
        self._followers.discard(follower)

    async def page(self, key: SessionKey, start: str, count: int) -> Page:
        tree = self._tree(key)
        here = parse_id(start)
        found = list(islice((entry for entry in tree.entries if entry.order >= here), count))
        return Page(found, tree.entries[0].id if tree.entries else None, tree.newest())

    async def all_saved(self, key: SessionKey, after: str) -> bool:
        tree = self._tree(key)
        mark = tree.marks.get(key.hash)
        if mark is None:
            return False
        return parse_id(mark.stream_id) <= parse_id(after) and tree.last.get(key.hash, 0) <= mark.seq

    # -- inside ---------------------------------------------------------------------------------------------------

    def forget_tree(self, key: SessionKey) -> None:
        """Lose the tree's entries and marks, as a server without its data would."""
        self._trees.pop(key.tree_hash, None)

    def _tree(self, key: SessionKey) -> _Tree:
        tree = self._trees.get(key.tree_hash)
        now = time.monotonic()
        if tree is None or now - tree.used_at > self._expire_s:
            for name in [name for name, other in self._trees.items() if now - other.used_at > self._expire_s]:
                del self._trees[name]
            tree = self._trees[key.tree_hash] = _Tree(self._kept)
        return tree

    def _new_id(self) -> str:
        self._last_id = max((time.time_ns() // 1_000_000, 0), (self._last_id[0], self._last_id[1] + 1))
        return f"{self._last_id[0]}-{self._last_id[1]}"

    def _listen(self, channel: Channel) -> Listener:
        listener = Listener(channel, self._listeners.discard)
        listener.ready.set()
        self._listeners.add(listener)
        return listener

    def _tell(self, channel: Channel, item: Any) -> None:
        for listener in self._listeners:
            if listener.channel is channel:
                listener.put(item)
