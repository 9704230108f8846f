"""Which names may stand under `tools` in an agent.yaml, and what to say of those that may not.

What the tools do is left to `agents_app.tools` and `agents_app.session_tools`.
"""

from collections.abc import Sequence

from agents_app.tools.registry import TOOL_NAMES
from halo_project.suggestions import suggestion

RELAY = "relay"  # stands for the three relay tools
RELAY_TOOLS = ("relay_send", "relay_interrupt", "relay_stop")
DELEGATION_TOOL = "start_session"
# They come with a non-empty `team`, all together.
SESSION_TOOLS = (
    DELEGATION_TOOL, "session_list", "query_session", "interrupt_session", "stop_session", "archive_session",
    "get_session_output", "query_agent",
)  # fmt: skip
CONTINUE_TASK = "continue_task"
ACTIVATE_SKILL = "activate_skill"
CRON_JOBS = "cron_jobs"

LISTED: tuple[str, ...] = tuple(dict.fromkeys((*TOOL_NAMES, RELAY)))


def tool_remarks(names: Sequence[str]) -> dict[int, str]:
    """A sentence for each name that has no effect, by its place in the list."""
    found = ((index, _remark(name)) for index, name in enumerate(names))
    return {index: text for index, text in found if text}


def _remark(name: str) -> str:
    if name in LISTED:
        return ""
    if name in SESSION_TOOLS:
        return f"`{name}` under `tools` has no effect: the tools for sub-agents come with a `team`."
    if name == ACTIVATE_SKILL:
        return f"`{name}` under `tools` has no effect: it comes by itself with `skills`."
    if name == CRON_JOBS:
        return f"`{name}` under `tools` has no effect: it comes by itself with the skill `cron`."
    if name == CONTINUE_TASK:
        return f"`{name}` under `tools` has no effect: every agent has it."
    if name in RELAY_TOOLS:
        return f"`{name}` under `tools` has no effect: `{RELAY}` stands for all three relay tools."
    return f"`{name}` under `tools` is no tool of Halo's; it is ignored.{suggestion(name, LISTED)}"
