"""What `/session context` shows: who answers, how full the context is, and the parts of the system prompt.

Synchronous; runs inside `db_and_files()`.
"""

from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from agents_app.config.agents import AgentConfig, load_agent
from agents_app.config.model_choice import choose_model
from agents_app.config.prompt import Section
from agents_app.prompt_preview import preview
from channels_app.commands.asking import Caller
from channels_app.commands.standing import Standing, open_session, stand
from channels_app.commands.wording import say
from halo_project.errors import HaloError


def context_report(caller: Caller) -> str:
    """Raises NotFound (session_missing, agent_missing), AgentInvalid."""
    standing, language = stand(caller), caller.language
    session = open_session(caller, standing)
    agent = load_agent(session.agent_id, standing.root, settings.HALO_HOME)
    facts = {
        "agent_word": f"{agent.name} (`{agent.agent_id}`)",
        "model_word": model_label(agent, standing.root),
        "tokens_word": _filled(language, session.context_tokens, agent.context_max_tokens),
        "written_word": f"{session.total_output_tokens:,}",
        "directory_word": f"`{session.working_dir or standing.root}`",
    }
    lines = [f"- {say(language, key)}: {value}" for key, value in facts.items()]
    prompt = preview(agent.agent_id, caller.workspace, session.session_id)
    sections = [_section_line(language, each, standing) for each in prompt.sections]
    return "\n".join([f"**{say(language, 'context')}**", "", *lines, f"- {say(language, 'prompt_word')}:", *sections])


def model_label(agent: AgentConfig, root: Path) -> str:
    """The model that would answer now, or why none would."""
    try:
        return choose_model(agent, settings.HALO_HOME, settings.HALO.lookup, root).label
    except HaloError as error:
        return error.message


def _filled(language: str, used: int, most: int) -> str:
    return say(language, "tokens", used=f"{used:,}", most=f"{most:,}", percent=round(100 * used / most))


def _section_line(language: str, section: Section, standing: Standing) -> str:
    size = say(language, "characters", count=f"{len(section.text):,}")
    files = ", ".join(f"`{_shown(path, standing.root)}`" for path in section.files)
    return f"  - {section.name}: {size}{' · ' if files else ''}{files}"


def _shown(path: Path, root: Path) -> str:
    """From the workspace or the home on: the rest of the machine's paths is nobody's business."""
    places: Sequence[tuple[str, Path]] = (("", root), ("HALO_HOME/", settings.HALO_HOME.home))
    for prefix, place in places:
        if path.is_relative_to(place):
            return f"{prefix}{path.relative_to(place).as_posix()}"
    return path.name
