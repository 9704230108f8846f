"""What people ask in a chaos run, and what the model answers: by what stands in the newest message alone.

A message reads `chaos <session> <number> <kind>`. Kinds: plain, slow, tools, child, deep, stay. Every command carries
the mark of the run, so that what is left of it can be found.
"""

import json
import random
import re
from typing import Any

from sessions_app.raw_repair import blocks_of
from tests.support.model_server import Call, ModelReply

KINDS = {"plain": 4, "slow": 3, "tools": 5, "child": 4, "deep": 1, "stay": 1}
STAY_S = 900
_MESSAGE = re.compile(r"chaos (\w+) (\d+) (\w+)")
_BRIEF = re.compile(r"brief (\w+) (\d+) (\w+)")


class Script:
    """The answers of one run. `mark` names its commands; the same seed gives the same choices per request."""

    def __init__(self, mark: str):
        self.mark = mark
        self._random = random.Random(mark)
        self._calls = 0

    def message(self, session: str, number: int, kinds: random.Random) -> str:
        kind = kinds.choices(list(KINDS), weights=list(KINDS.values()))[0]
        return f"chaos {session} {number} {kind}"

    def respond(self, body: dict[str, Any]) -> ModelReply:
        words = _newest(body["messages"])
        briefs = _BRIEF.findall(words)
        asked = briefs or _MESSAGE.findall(words)
        calls = [call for session, number, kind in asked for call in self._calls_for(session, number, kind)]
        if calls:
            return ModelReply(text="On it. ", calls=calls)
        names = " ".join(f"{session}/{number}" for session, number, _ in asked)
        if any(kind == "slow" for _, _, kind in asked):
            return ModelReply(text=[f"word{n} " for n in range(60)] + [names], delay_ms=50)
        return ModelReply(text=["Answer ", "to ", names or "that"], delay_ms=20)

    def _calls_for(self, session: str, number: str, kind: str) -> list[Call]:
        if kind == "tools":
            return [self._shell(f"sleep {self._random.choice((0.2, 1, 3))}; echo {number}.{n}") for n in range(2)]
        if kind == "stay":
            return [self._shell(f"nohup sleep {STAY_S} >/dev/null 2>&1 & echo stays")]
        if kind in ("child", "deep"):
            inner = "deeper" if kind == "deep" else "tools"
            return [self._call("start_session", {"agent_id": "helper", "message": f"brief {session} {number} {inner}"})]
        if kind == "deeper":
            return [self._call("start_session", {"agent_id": "helper", "message": f"brief {session} {number} tools"})]
        return []

    def _shell(self, command: str) -> Call:
        self._calls += 1
        return self._call("shell_exec", {"command": f": {self.mark} {self._calls}; {command}"})

    def _call(self, name: str, values: dict[str, str]) -> Call:
        self._calls += 1
        return Call(name, values, f"call_{self.mark}_{self._calls}")


def _newest(messages: list[dict[str, Any]]) -> str:
    """The words of the newest message; what a tool answered is not looked at."""
    return json.dumps([block for block in blocks_of(messages[-1]) if block["type"] == "text"])
