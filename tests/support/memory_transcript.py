"""A transcript that keeps everything in memory under the rules of the real one: for tests of the engine."""

import itertools

from sessions_app.mutations import Frame
from sessions_app.raw_history import RawHistory
from sessions_app.ui_state import UIState


class MemoryTranscript:
    """`saves` holds, for each save, how many raw messages and rows there were: the save points."""

    def __init__(self, *user_texts: str):
        ticks = itertools.count(1_700_000_000_000)
        self.state = UIState([], agent_name="Default", clock=lambda: next(ticks))
        self.raw = RawHistory([])
        self.frames: list[Frame] = []
        self.saves: list[tuple[int, int]] = []
        if user_texts:
            self.raw.add_user_blocks([{"type": "text", "text": text} for text in user_texts])

    @property
    def context_tokens(self) -> int:
        return self.state.context_tokens

    def emit(self, *events) -> None:
        for event in events:
            self.frames.extend(mutation.frame() for mutation in self.state.apply(event))

    async def save(self) -> None:
        self.saves.append((len(self.raw.messages), len(self.state.rows)))
        self.state.mark_saved()
        self.raw.mark_saved()

    def unsaved_text(self) -> int:
        return self.state.unsaved_text()

    def types(self) -> list[str]:
        return [frame["type"] for frame in self.frames]

    def outputs(self) -> dict[str, str]:
        """Outputs of the calls in flight by call id."""
        blocks = self.state.inflight.blocks if self.state.inflight is not None else []
        calls = [block["toolCall"] for block in blocks if block["type"] == "tool_call"]
        return {call["toolUseId"]: call.get("output") for call in calls}
