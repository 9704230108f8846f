"""Workers of a real Halo that are killed while they send: every message arrives, and none as two."""

import subprocess
import sys
from collections.abc import Callable

from tests.agents_app.config.support import write_yaml
from tests.channels_app.receiver import Receiver, Reply
from tests.support.halo_process import ROOT, HaloFactory, RunningHalo, clean_environment

MESSAGES = 40
OWE = f"""
from channels_app.outbox import Delivery, enqueue
from halo_project.clock import utcnow
targets = [{{"channelType": "webhook", "accountId": f"{{URL}}/{{n % 10}}"}} for n in range({MESSAGES})]
enqueue([Delivery(each, str(n), f"t:{{n}}", "t", "/", "full") for n, each in enumerate(targets)], utcnow())
"""
COUNT = """
from collections import Counter
from channels_app.models import OutboxMessage
print(dict(Counter(OutboxMessage.objects.values_list("state", flat=True))))
"""


def run_in(halo: RunningHalo, code: str, **names: str) -> str:
    begin = "import django; django.setup()\n" + "".join(f"{name} = {value!r}\n" for name, value in names.items())
    env = clean_environment(
        HALO_HOME=str(halo.home.home), DJANGO_SETTINGS_MODULE="halo_project.settings", PYTHONPATH=str(ROOT)
    )
    done = subprocess.run([sys.executable, "-c", begin + code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def all_sent(halo: RunningHalo) -> Callable[[], bool]:
    return lambda: run_in(halo, COUNT) == str({"sent": MESSAGES})


def test_workers_killed_while_they_send(start_halo: HaloFactory, hooks: Receiver) -> None:
    halo = start_halo(HALO_WORKERS="2", HALO_TIME_SCALE="0.3")
    write_yaml(halo.home.settings_yaml, {"general": {"webhook": {"addresses": [hooks.url("/in/")]}}})
    hooks.replies = {f"/in/{number}": [Reply(delay=0.4)] for number in range(10)}
    run_in(halo, OWE, URL=hooks.url("/in"))
    for number, worker in enumerate(("worker-1", "worker-2"), 1):
        halo.wait_for(lambda least=number * 8: len(hooks.posted) >= least)
        halo.kill(worker)
    halo.wait_for(all_sent(halo), 120)
    arrived = {posted.headers["webhook-id"]: posted.json["data"]["text"] for posted in hooks.posted}
    assert sorted(arrived.values(), key=int) == [str(number) for number in range(MESSAGES)]
    doubled = len(hooks.posted) - MESSAGES
    assert 0 < doubled < MESSAGES  # what was under way in the two that were killed, sent again under the same id
