"""`/workspace …`: the folder the agents work on."""

from django.conf import settings

from agents_app.config.agents import list_agents
from channels_app.api.folders import absolute_path, open_folder
from channels_app.commands.asking import Answer, Caller
from channels_app.commands.standing import next_session_id, own_sessions, stand
from channels_app.commands.wording import say
from halo_project.clock import utcnow
from halo_project.database import db_and_files
from sessions_app.queries import MAX_LIMIT
from sessions_app.workspaces import open_workspace


async def info(caller: Caller, _: str) -> Answer:
    return Answer(await db_and_files(_describe, caller))


def _describe(caller: Caller) -> str:
    standing, language = stand(caller), caller.language
    page = own_sessions(caller, MAX_LIMIT)
    agents = [
        f"{agent.name} (`{agent.agent_id}`)"
        for agent in list_agents(standing.root, settings.HALO_HOME)
        if not agent.internal
    ]
    facts = {
        "workspace_word": f"`{standing.root}`",
        "sessions_word": f"{len(page.sessions)}{'+' if page.next_cursor else ''}",
        "agents_word": ", ".join(agents),
        "level_word": caller.access,
    }
    return "\n".join(f"- {say(language, key)}: {value}" for key, value in facts.items())


async def switch(caller: Caller, wanted: str) -> Answer:
    if not wanted:
        return Answer(say(caller.language, "which_folder"))
    path = await db_and_files(_open, wanted)
    text = say(caller.language, "workspace_switched", path=f"`{path}`")
    return Answer(text, next_session_id(caller), workspace=path)


def _open(wanted: str) -> str:
    return open_workspace(str(open_folder(absolute_path(wanted))), utcnow()).path


VERBS = {"info": info, "switch": switch}
