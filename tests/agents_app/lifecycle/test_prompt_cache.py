"""A long session on each protocol: what one request holds is the beginning of the next one, byte for byte."""

import re
from itertools import pairwise

import pytest

from agents_app.runtimes.registry import warm_up
from tests.support.crew import Crew
from tests.support.model_server import Call, ModelReply
from tests.support.model_settings import BEDROCK, point_at

pytestmark = pytest.mark.django_db(transaction=True)

_MARK = re.compile(rb',?"cache_control":\{[^}]*\}')
_AGENT = """
name: Lead
model: {{provider: {provider}, id: some-model, endpoint: "{endpoint}", promptCaching: 1h}}
tools: [shell_exec, file_write, file_list]
"""


@pytest.mark.parametrize("provider", ["anthropic", "openai", "aws-bedrock-mantle", BEDROCK])
async def test_the_prefix_of_a_session_stays_the_same(crew: Crew, home, provider: str) -> None:
    warm_up("bedrock" if provider == BEDROCK else "openai")
    server = crew.server
    point_at(home, server, provider)
    endpoint = server.chat_url if provider in ("openai", "aws-bedrock-mantle") else server.url
    folder = crew.workspace / ".halo" / "agents" / "lead"
    (folder / "agent.yaml").write_text(_AGENT.format(provider=provider, endpoint=endpoint))
    server.respond(None)
    server.script(
        ModelReply(text="I write.", thinking="hm", calls=[Call("file_write", {"path": "文.txt", "content": "x"})]),
        ModelReply(calls=[Call("file_list", {}), Call("shell_exec", {"command": "date +%N"})]),
        ModelReply(text="Done."),
        ModelReply(text="Second."),
        ModelReply(calls=[Call("shell_exec", {"command": "ls"})]),
        ModelReply(text="Third."),
    )
    for words in ("first", "second", "third"):
        root = await crew.send(words)
        await crew.settle()
    assert crew.answers(root)[-1] == "Third."
    requests = server.requests
    assert len(requests) == 6
    begin = b'"input":[' if provider == "aws-bedrock-mantle" else b'"messages":['
    for earlier, later in pairwise(requests):
        held, now = (_MARK.sub(b"", request.raw) for request in (earlier, later))
        assert begin in held and held.endswith(b"]}")
        assert now.startswith(held[:-2] + b","), "nothing before the new messages may differ"
    if provider in ("anthropic", BEDROCK):
        ends = [_marked(request.body) for request in requests]
        for before, after in pairwise(ends):
            assert before[-1] in after, "the newest mark of a call is where the next one reads"
        assert requests[0].body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


def _marked(body: dict) -> list[int]:
    """Which messages carry a mark."""
    return [index for index, message in enumerate(body["messages"]) if "cache_control" in str(message)]
