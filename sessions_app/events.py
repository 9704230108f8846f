"""What can happen in a session, in the words of the engine: plain values, one class per kind of event.

The engine and the runner emit these; `ui_state.py` turns them into mutations of the UI log. Pure: no Django.
`turn_id` names one attempt at one model call: a retried call has a new one.
"""

from dataclasses import dataclass
from typing import Any

from sessions_app.messages import Usage


@dataclass(frozen=True, slots=True)
class UserLanded:
    """A queued message of a person or an agent entered the log at the beginning of its round."""

    row_id: str
    text: str
    stamp: str


@dataclass(frozen=True, slots=True)
class ContextSent:
    """The system prompt of the coming round; kept in the log because it explains the answer."""

    system_prompt: str


@dataclass(frozen=True, slots=True)
class TextArrived:
    """A piece of the answer, as it streams."""

    text: str
    turn_id: str


@dataclass(frozen=True, slots=True)
class ThinkingArrived:
    """A piece of the model's thinking, as it streams."""

    text: str
    turn_id: str


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The model asked for a tool. Emitted, and on disk, before the tool runs."""

    tool: str
    tool_use_id: str
    input: dict[str, Any]
    turn_id: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool call has its result. `result` is the text for the eye; `duration_ms` is None when it was cut off."""

    tool_use_id: str
    result: str
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CallFinished:
    """One model call ended well; its usage."""

    usage: Usage
    model_id: str
    turn_id: str


@dataclass(frozen=True, slots=True)
class CallDiscarded:
    """A failed call is about to be retried: what it streamed is taken back."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A line from the system to the reader: a retry, a refusal, a limit."""

    text: str


@dataclass(frozen=True, slots=True)
class SummaryMade:
    """A compaction replaced the beginning of the history by this text; the log keeps what it stands for."""

    text: str


@dataclass(frozen=True, slots=True)
class Compacted:
    """The history is shorter now; `context_tokens` is an estimate until the next call."""

    context_tokens: int


@dataclass(frozen=True, slots=True)
class CompactionProgress:
    """For a progress display: `started`, `summarizing`, `done`."""

    step: str


@dataclass(frozen=True, slots=True)
class ChildStarted:
    """This session gave a sub-agent something to do: a brief, a question, an interruption."""

    session_id: str
    agent_name: str
    task: str


@dataclass(frozen=True, slots=True)
class ChildReported:
    """A sub-agent is done: its report lands in this session, or this session stopped it."""

    session_id: str
    agent_name: str


@dataclass(frozen=True, slots=True)
class AgentsAtWork:
    """Which sub-agents are at work now, by session id and agent name: some of them ended without a report."""

    agents: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """The round ended in an error that a person must hear of."""

    error: str
    code: str


@dataclass(frozen=True, slots=True)
class RoundFinished:
    """The round is over, for whatever reason: the in-flight reply becomes a finished row."""


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """A follow-up round begins in a run that already had one."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A person stopped the run."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The run is over and its lease released; with `batch_boundary` only a round is, and another one follows."""

    batch_boundary: bool = False


Event = (
    UserLanded
    | ContextSent
    | TextArrived
    | ThinkingArrived
    | ToolCalled
    | ToolFinished
    | CallFinished
    | CallDiscarded
    | Notice
    | SummaryMade
    | Compacted
    | CompactionProgress
    | ChildStarted
    | ChildReported
    | Failed
    | RoundFinished
    | RoundStarted
    | Stopped
    | Completed
)
