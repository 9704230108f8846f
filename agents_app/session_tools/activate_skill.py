"""`activate_skill`: the model reads one of the skills that its prompt lists."""

import asyncio
from typing import Any, ClassVar

from agents_app.config.skill_text import activation
from agents_app.config.skills import Skill
from agents_app.session_tools.base import SessionTool, text_fields
from agents_app.tools.base import ToolContext
from agents_app.tools.problems import ToolWarning


class ActivateSkill(SessionTool):
    """Reads a skill. Its answer is the skill's text and no JSON. `skills`: those in effect for the agent."""

    name = "activate_skill"
    summary = (
        "Read a skill: how a kind of work is done here. Do it before you begin such work. Answers with the skill's "
        "instructions and the files that belong to it."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            **text_fields(skill_id="Id of one of the skills listed in your system prompt."),
            "part": {"type": "integer", "minimum": 1, "description": "Of a long skill: which part. The first is 1."},
        },
        "required": ["skill_id"],
    }

    async def call(self, args: dict[str, Any], context: ToolContext) -> str:
        skill = self._chosen(args["skill_id"].strip())
        return await asyncio.to_thread(self._read, skill, args.get("part", 1))

    def _chosen(self, wanted: str) -> Skill:
        """By its id, or by its name where only one has that. Raises ToolWarning."""
        offered = [skill for skill in self._in_force.skills if skill.model_invocable]
        named = [skill for skill in offered if skill.skill_id == wanted] or [
            skill for skill in offered if skill.name.casefold() == wanted.casefold()
        ]
        if len(named) != 1:
            ids = ", ".join(skill.skill_id for skill in offered)
            raise ToolWarning(f"Error: you have no skill '{wanted[:100]}'. Your skills: {ids}.")
        return named[0]

    def _read(self, skill: Skill, part: int) -> str:
        given = self._in_force
        return activation(skill, given.skill_values, part, given.limits.model_chars)
