"""Notices a model that makes the same call again and again. Pure."""

import json
from collections import deque
from typing import Any

WINDOW = 15
REPEATS = 3
EXEMPT = frozenset({"session_list", "get_session_output", "query_agent"})  # polling these is their use


class LoopDetector:
    """One per round: `seen` says, once per distinct call, that it was made the third time within the window."""

    def __init__(self) -> None:
        self._recent: deque[str] = deque(maxlen=WINDOW)
        self._warned: set[str] = set()

    def seen(self, tool: str, tool_input: dict[str, Any]) -> bool:
        if tool in EXEMPT:
            return False
        call = f"{tool}\0{json.dumps(tool_input, sort_keys=True)}"
        self._recent.append(call)
        if call in self._warned or self._recent.count(call) < REPEATS:
            return False
        self._warned.add(call)
        return True
