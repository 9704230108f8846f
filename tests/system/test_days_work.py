"""A day's small tasks of the default agent in a real repository: find and mend a fault, hand work on, make an agent.

Real processes, the real SDK, real git and a real test run. What the model says is scripted; everything that comes of it
is not.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.halo_process import HaloFactory, RunningHalo
from tests.support.model_server import Call, ModelReply, ModelServer
from tests.support.ws_client import WsClient

WRONG = "def total(prices):\n    return sum(prices[1:])\n"
RIGHT = "def total(prices):\n    return sum(prices)\n"
TEST = "import unittest\n\nfrom shop import total\n\n\nclass T(unittest.TestCase):\n    def test_total(self):\n"
TEST += "        self.assertEqual(total([1, 2, 3]), 6)\n"
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org")

Step = Callable[[str], ModelReply] | ModelReply


@pytest.fixture(scope="module")
def halo(server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHalo]:
    factory = HaloFactory(tmp_path_factory.mktemp("day"))
    yield factory(ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=server.url)
    factory.stop_all()


@pytest.fixture(scope="module")
def repository(halo: RunningHalo) -> Path:
    (halo.workspace / "shop.py").write_text(WRONG)
    (halo.workspace / "test_shop.py").write_text(TEST)
    (halo.workspace / ".gitignore").write_text(".halo/\n__pycache__/\n")
    for command in (("init", "-q"), ("add", "-A"), (*IDENTITY, "commit", "-qm", "First")):
        subprocess.run(["git", *command], cwd=halo.workspace, check=True, timeout=60)
    return halo.workspace


def newest(body: dict[str, Any]) -> str:
    """All text of the newest message: what was said, or what the calls before gave."""
    content = body["messages"][-1]["content"]
    parts = [block.get("text") or block.get("content") or "" for block in content]
    return "\n".join(part if isinstance(part, str) else json.dumps(part) for part in parts)


def follow(*steps: Step) -> Callable[[dict[str, Any]], ModelReply]:
    """One step for each request, in order; a step may look at what the last one gave."""
    left = list(steps)

    def respond(body: dict[str, Any]) -> ModelReply:
        step = left.pop(0)
        return step(newest(body)) if callable(step) else step

    return respond


def call(tool: str, **arguments: Any) -> ModelReply:
    return ModelReply(calls=[Call(tool, arguments)])


async def ask(halo: RunningHalo, session_id: str, text: str) -> WsClient:
    """Say it in a new session of the default agent and wait until everything that came of it is done."""
    async with await WsClient.login(halo.url, halo.password, workspace=str(halo.workspace)) as client:
        await client.subscribe(session_id)
        await client.send_chat(text, session_id=session_id)
        await client.until("chat:complete", within=180)
        return client


def rows(client: WsClient, session_id: str, kind: str) -> list[str]:
    key = "toolOutput" if kind == "tool_result" else "content"
    return [row[key] for row in client.state(session_id).all_rows() if row["type"] == kind]


async def test_a_fault_is_found_mended_tested_and_committed(
    halo: RunningHalo, server: ModelServer, repository: Path
) -> None:
    commit = f"git {' '.join(IDENTITY)} commit -qam 'Count all'"
    server.respond(
        follow(
            call("grep", pattern="def total", include="*.py"),
            lambda found: call("file_read", path=found.split(":")[0]),
            call("file_edit", path="shop.py", old_string="sum(prices[1:])", new_string="sum(prices)"),
            call("shell_exec", command=f"python3 -m unittest -q 2>&1 && git diff --stat && {commit}"),
            call("draft", content="The first price was left out. Mended; the test passes."),
            ModelReply(text="The first price was left out of the sum; it is counted now, and the test passes."),
        )
    )
    client = await ask(halo, "mend000000000001", "the total in the shop is wrong, find out why and mend it")
    results = rows(client, "mend000000000001", "tool_result")
    assert results[0] == "shop.py:1:def total(prices):" and "sum(prices[1:])" in results[1]
    assert "OK" in results[3] and "shop.py" in results[3] and results[4].startswith("Draft 1 of 3.")
    assert (repository / "shop.py").read_text() == RIGHT
    log = subprocess.run(["git", "log", "--format=%s"], cwd=repository, capture_output=True, text=True, check=True)
    assert log.stdout.split("\n")[:2] == ["Count all", "First"]
    system = json.dumps(server.requests[-1].body["system"])
    assert "- `executor`" in system and "- halo:" in system and f"folder {repository}" in system


async def test_work_is_handed_to_the_executor_and_its_report_comes_back(
    halo: RunningHalo, server: ModelServer, repository: Path
) -> None:
    brief = "Write CHANGELOG.md with one line about the sum."
    by_default = follow(
        call("start_session", agent_id="executor", message=brief),
        ModelReply(text="Handed on."),
        lambda report: ModelReply(text="The changelog is there." if "Written" in report else f"no report: {report}"),
    )
    by_executor = follow(
        call("file_write", path="CHANGELOG.md", content="- The sum counts the first price.\n"),
        ModelReply(text="Written: CHANGELOG.md, one line."),
    )

    def by_agent(body: dict[str, Any]) -> ModelReply:
        first = json.dumps(body["messages"][0])
        return by_executor(body) if "[Session hand" in first else by_default(body)

    server.respond(by_agent)
    async with await WsClient.login(halo.url, halo.password, workspace=str(halo.workspace)) as client:
        await client.subscribe("hand000000000001")
        await client.send_chat("have somebody write the changelog", session_id="hand000000000001")
        await client.until("chat:stream", text="The changelog is there.", within=180)
    assert (repository / "CHANGELOG.md").read_text() == "- The sum counts the first price.\n"


async def test_a_slash_command_of_a_skill_makes_an_agent(
    halo: RunningHalo, server: ModelServer, repository: Path
) -> None:
    agent = "name: Reviewer\ndescription: Reads changes.\nmodel: auto\ntools: [file_read, grep]\n"
    server.respond(
        follow(
            lambda said: call(
                "file_write",
                path=".halo/agents/reviewer/agent.yaml",
                content=agent if "[Skill activated: /agent]" in said and "create" in said else "",
            ),
            ModelReply(text="The agent reviewer is there."),
        )
    )
    client = await ask(halo, "make000000000001", "/agent create a reviewer that reads changes")
    assert rows(client, "make000000000001", "user") == ["/agent create a reviewer that reads changes"]
    assert (repository / ".halo/agents/reviewer/agent.yaml").read_text() == agent


async def test_a_skill_is_read_before_it_is_used(halo: RunningHalo, server: ModelServer, repository: Path) -> None:
    server.respond(
        follow(
            call("activate_skill", skill_id="halo"),
            lambda given: ModelReply(text="I looked it up." if given.startswith("# Skill: ") else given),
        )
    )
    client = await ask(halo, "know000000000001", "where do you keep what was said?")
    assert rows(client, "know000000000001", "assistant")[-1] == "I looked it up."
