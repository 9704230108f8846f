"""`cron_jobs`: the tool by which an agent looks after the schedules of its workspace. It translates; `tool_actions`
says what an agent may do.
"""

from typing import Any, ClassVar

from agents_app.config.command_names import reaches
from agents_app.delegation import Refused
from agents_app.session_tools.base import SessionTool, text_fields
from agents_app.session_tools.registry import Holder, register
from agents_app.tools.base import ToolContext
from cron_app.tool_actions import NEEDED, Call, act, answer_of
from cron_app.tool_fields import in_words_of_the_tool
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.errors import HaloError

SKILL = "cron"
_FRAME_CHARS = 200  # of an answer, beside the jobs it lists


class CronJobs(SessionTool):
    """Lists, makes, changes and deletes scheduled jobs."""

    name = "cron_jobs"
    summary = (
        "Scheduled jobs of this workspace: an agent is given a prompt at set times, with nobody there to answer "
        "questions. `action` is list, create, update, enable, disable or delete. create needs `prompt` and either "
        "`schedule` or `run_at`; the others but list need `job_id`, and update changes only the fields you give (an "
        "empty text clears one). Answers with JSON; code 0 means done, and `next_run` is when it runs next."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            **text_fields(
                action="list, create, update, enable, disable or delete.",
                job_id="Which job. With list: this one, with all of its prompt.",
                prompt="What is to be done, complete in itself: who does it knows nothing of this conversation.",
                schedule="When it runs again and again: five fields, minute hour day-of-month month day-of-week.",
                run_at="When it runs once, ISO 8601; without an offset in the job's time zone.",
                timezone="IANA name, say Europe/Paris, in which the schedule is meant. Without: this machine's.",
                label="A short name for people.",
                agent_id="Which agent does it. Without: you.",
                working_dir="Folder in the workspace that it works in. Without: the workspace itself.",
                active_from="It does not run before this, ISO 8601. With `schedule` only; also to pause it until then.",
                active_until="It does not run from this on, ISO 8601. With `schedule` only.",
            ),
            "new_session_each_run": {
                "type": "boolean",
                "description": "Each run begins a new session. Without: all runs go on in one session of the job's.",
            },
            "targets": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Who gets the answer of a run: objects with channelType, accountId, and chatId where "
                "the channel needs one. All of them, also on update; an empty list sends it to nobody.",
            },
            "enabled": {"type": "boolean", "description": "false: it stands there and does not run."},
            "offset": {"type": "integer", "minimum": 0, "description": "With list: where to go on."},
        },
        "required": ["action"],
        "additionalProperties": False,
    }

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        room = context.limits.model_chars - _FRAME_CHARS
        call = Call(self._session, self._held.workspace, args, self._origin(context), room)
        try:
            return await db(act, call, utcnow())
        except HaloError as error:
            if error.status >= 500:
                raise
            raise Refused(in_words_of_the_tool(error.message)) from error


def is_held(holder: Holder) -> bool:
    """By agents that people talk to, where the skill that teaches it is in effect and the level is not too low."""
    taught = any(skill.skill_id == SKILL for skill in holder.skills)
    return taught and not holder.agent.internal and reaches(holder.access, NEEDED)


def register_tool() -> None:
    register(CronJobs, is_held, answer_of)
