"""The fixed sentences the engine puts into histories and logs. Pure; docs/engine.md lists where each appears."""

from agents_app.engine.control import CutOff

REPLY_CUT = {
    CutOff.STOP: "[This reply was interrupted by the user.]",
    CutOff.INTERRUPT: "[This reply was interrupted by the user.]",
    CutOff.SHUTDOWN: "[This reply was cut off by a server restart.]",
}
REPLY_ERROR = "[This reply was cut off by an error.]"
CALL_CUT_UI = "[interrupted by user]"
CALL_CUT_RESTART = "[interrupted by a server restart]"
COMMAND_CUT_RESTART = (
    "[Command cut off by a server restart — it was still running when the server shut down, so it may or may not have "
    "taken effect. Check before re-running it.]"
)
MAX_TOKENS_CALL = (
    "Error: this call was not run: the reply reached its length limit, so its arguments may be incomplete. "
    "Send the call again, in smaller parts if it is long."
)
LOOP_WARNING = (
    "[System: this is the third time that the same call with the same arguments was made. Its result will not change "
    "by itself; try something else or say what blocks you.]"
)
COMPACTION_SKIPPED = "Compaction skipped — no summary produced"
COMPACTION_FAILED = "Compaction failed — context unchanged"
COMPACTION_CANCELLED = "Compact cancelled"
NOTHING_TO_COMPACT = "There is nothing to compact yet."
REPLY_LENGTH = "The reply reached its length limit and is not complete. Ask the agent to go on."
PAUSES = "The vendor paused this turn again and again; it was left there. Ask the agent to go on."
EMPTY_REPLY = "The model ended its reply without any text."
CRASHES = "its turn ended the worker three times"
CRASH_LOOP = f"This session is left alone: {CRASHES}. Send a message to try again."


REFUSAL_SIGN = "⚠️"


def refusal(agent: str, category: str, explanation: str) -> str:
    detail = f" ({category})" if category else ""
    reason = f": {explanation}" if explanation else "."
    return f"{REFUSAL_SIGN} [{agent}] The model declined to respond{detail}{reason} A new session (/new) may help."


def compacting(context_tokens: int) -> str:
    return f"Compacting context ({round(context_tokens / 1000)}K tokens)…"


def compacted(count: int, *, manual: bool) -> str:
    return (
        f"Context compacted: {count} older messages summarized" if manual else f"Auto-compacted {count} older messages"
    )


def output_so_far(output: str) -> str:
    """What follows the sentence of an interrupted call that had said something already."""
    return f"\nOutput so far:\n{output}" if output else ""


def bad_input(tool: str, problem: str) -> str:
    return f"Error: {tool} was not run: {problem} Send the call again with complete, valid JSON arguments."


def unknown_tool(name: str, known: list[str]) -> str:
    return f'Error: unknown tool "{name}". Available: {", ".join(known) or "none"}.'


def retrying(agent: str, kind: str, seconds: float, attempt: int, attempts: int) -> str:
    cause = {
        "throttled": "the model is rate limited",
        "transient": "the model's server had a temporary error",
        "network": "the connection to the model broke",
    }.get(kind, "the model call failed")
    return f"{agent}: {cause}; trying again in {seconds:.0f} s (attempt {attempt} of {attempts})."
