"""A skill in a real turn: the prompt lists it, the model activates it."""

import pytest

from tests.agents_app.config.support import write_skill
from tests.support.crew import Crew
from tests.support.model_server import Call, ModelReply

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_listed_skill_is_offered_and_activated(crew: Crew, home) -> None:
    write_skill(home.global_skills / "web", "Go to {{workspace_root}}.", description="Finds pages.")
    crew.add_agent("lead", "tools: [shell_exec]\nskills: [web, missing]")
    crew.on("lead", "go", ModelReply(calls=[Call("activate_skill", {"skill_id": "web"})]))
    crew.on("lead", "Go to", "done")
    root = await crew.send("go")
    await crew.settle()
    assert "web: Finds pages." in str(crew.server.requests[0].body["system"])
    assert crew.results(root) == [f"# Skill: web\n\nGo to {crew.workspace}."]
    assert crew.answers(root)[-1] == "done"
