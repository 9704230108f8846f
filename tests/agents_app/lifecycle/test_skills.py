"""A skill in a real turn: the prompt lists it, the model activates it."""

import asyncio

import pytest

from tests.agents_app.config.support import write, write_skill, write_yaml
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


async def test_a_secret_that_a_command_prints_does_not_reach_the_conversation(crew: Crew, home) -> None:
    """By mistake, as the shell does in its complaints; and in the output of a command that is stopped."""
    key = "k3y-0123456789"
    declared = {"params": [{"key": "api_key", "secret": True}]}
    write_skill(home.global_skills / "web", "Use {{params.api_key}}.", declared)
    write_yaml(home.settings_yaml, {"web": {"params": {"api_key": key}}})
    more = f'tools: [shell_exec]\nskills: [web]\nmodel: {{provider: anthropic, id: m, endpoint: "{crew.server.url}"}}'
    write(home.global_agents / "caller" / "agent.yaml", f"name: Caller\n{more}\nsystem_prompt: You are agent caller.\n")
    commands = [
        "echo {{web.params.api_key}} > used; wc -c < used",
        "curl -H 'X: {{web.params.api_key}}' )",
        "{{web.params.api_key}}",
        "cd {{web.params.api_key}}; echo {{web.params.api_key}}",
    ]
    crew.on("caller", "go", ModelReply(calls=[Call("shell_exec", {"command": each}) for each in commands]))
    crew.on("caller", "Command failed", "done")
    root = await crew.send("go", agent="caller")
    await crew.settle()
    assert (crew.workspace / "used").read_text() == f"{key}\n"
    results = crew.results(root)
    assert results[0].strip() == str(len(key) + 1) and all("{{web.params.api_key}}" in each for each in results[1:])
    sent = "".join(str(request.body) for request in crew.server.requests)
    assert key not in sent + str(crew.raw(root)) + str(crew.rows(root)) + str(await crew.frames(root))
    crew.on("caller", "again", ModelReply(calls=[Call("shell_exec", {"command": f"{commands[3]}; sleep 60"})]))
    await crew.send("again", agent="caller")
    await crew.running_command(root)
    await asyncio.sleep(0.3)
    assert await crew.stop()
    await crew.settle()
    assert "Output so far" in crew.results(root)[-1] and key not in str(crew.raw(root)) + str(crew.rows(root))
