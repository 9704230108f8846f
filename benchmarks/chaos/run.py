"""One chaos run from start to verdict."""

import asyncio
import secrets
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.chaos.faults import Faults
from benchmarks.chaos.people import Person
from benchmarks.chaos.script import Script
from benchmarks.chaos.verdict import Verdict, judge, wait_until_quiet
from tests.support.halo_process import HaloFactory, RunningHalo
from tests.support.model_server import ModelServer
from tests.support.ws_client import login_cookie

AGENT = """
name: {name}
model: {{provider: anthropic, id: claude-test, endpoint: "{url}", maxTokens: 1000}}
tools: [shell_exec]
team: [helper]
"""
QUIET_WITHIN_S = 150.0


def run(seconds: float, *, people: int = 20, fault_every_s: float = 9.0, seed: str = "", scale: str = "1") -> Verdict:
    """Raises AssertionError when Halo does not start or ends by itself."""
    mark = f"chaos-{seed or secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory(prefix="halo-chaos-") as folder, ModelServer() as server:
        factory = HaloFactory(Path(folder))
        script = Script(mark)
        server.respond(script.respond)
        halo = factory(
            HALO_WORKERS="2",
            ANTHROPIC_API_KEY="k",
            ANTHROPIC_BASE_URL=server.url,  # without it the workspace's agents would not be let talk to that address
            HALO_TIME_SCALE=scale,
            HALO_WORKSPACE=str(_workspace(folder, server)),
        )
        try:
            verdict = asyncio.run(_talk(halo, script, seconds, people, fault_every_s))
            quiet_s = wait_until_quiet(halo, QUIET_WITHIN_S)
            found = judge(halo, verdict[0], mark)
            found.expect(halo.process.poll() is None, "halo serve ended by itself")
            found.figures |= verdict[1] | {"seconds until quiet": round(quiet_s, 1)}
            if found.broken:
                kept = Path(tempfile.mkdtemp(prefix="halo-chaos-kept-"))
                (kept / "logs").write_text(halo.logs())
                found.broken.append(f"the logs are in {kept}")
            return found
        finally:
            factory.stop_all()


def _workspace(folder: str, server: ModelServer) -> Path:
    root = Path(folder).resolve() / "workspace"
    for agent_id in ("lead", "helper"):
        place = root / ".halo" / "agents" / agent_id
        place.mkdir(parents=True)
        (place / "agent.yaml").write_text(AGENT.format(name=agent_id.title(), url=server.url))
    return root


async def _talk(
    halo: RunningHalo, script: Script, seconds: float, count: int, fault_every_s: float
) -> tuple[list[Person], dict[str, Any]]:
    cookie = await asyncio.to_thread(login_cookie, halo.url, halo.password or "")
    people = [Person(f"p{number:02d}", halo, cookie, script) for number in range(count)]
    faults = Faults(halo, people, script.mark)
    deadline = time.monotonic() + seconds

    def over() -> bool:
        return time.monotonic() > deadline

    talking = [asyncio.create_task(person.talk(over)) for person in people]
    # Talk goes on after the last fault: nobody may need the quiet to be acknowledged.
    raging = asyncio.create_task(faults.rage(lambda: time.monotonic() > deadline - 5, fault_every_s))
    await asyncio.wait_for(asyncio.gather(*talking, raging), seconds + 180)
    slowest = max(people, key=lambda person: person.slowest_ack_s)
    return people, {
        **{f"faults: {kind}": number for kind, number in sorted(faults.done.items())},
        "slowest acknowledgement s": round(slowest.slowest_ack_s, 2),
        "seconds of its steps": slowest.slowest_steps,
        "lines lost": sum(person.reconnects for person in people),
    }
