"""The order of things: read the environment, refuse what can be refused, say which processes there are, watch them."""

import sys
from pathlib import Path

from halo_project.bundled_redis import server_command
from halo_project.env import HaloEnv, read_env
from halo_project.layout import HomeLayout
from halo_project.supervisor import preflight
from halo_project.supervisor.child import Child
from halo_project.supervisor.watch import Watch

REDIS, WEB, BEAT = "redis", "web", "beat"


def serve() -> int:
    """Run until asked to stop. The exit code: 0 after a stop, 1 when something failed. Raises HaloError before that."""
    env = read_env()
    layout = HomeLayout(env.home)
    layout.prepare()
    lock = preflight.take_lock(layout)
    listener = preflight.listen(env)
    workspace = preflight.prepare_workspace(env, layout)
    preflight.check_reachable("HALO_REDIS_URL", env.redis_url)
    preflight.check_reachable("HALO_DATABASE_URL", env.database_url)
    if env.redis_url is None:
        preflight.stop_leftover_redis(layout)
    children = plan(env, layout, lock, listener.fileno())
    with listener:
        return Watch(env, layout, workspace, children).run()


def plan(env: HaloEnv, layout: HomeLayout, lock: int, listener: int) -> list[Child]:
    """The processes of an installation, in the order in which they are started."""
    children = [] if env.redis_url is not None else [_redis(layout, lock)]
    children.append(_ours(WEB, "web_server", layout, lock, listener))
    workers = (f"worker-{number}" for number in range(1, env.worker_processes + 1))
    children += [_ours(name, "worker_main", layout, lock) for name in workers]
    children.append(_ours(BEAT, "beat_main", layout, lock))
    return children


def _ours(name: str, module: str, layout: HomeLayout, lock: int, listener: int | None = None) -> Child:
    command = [sys.executable, "-m", f"halo_project.processes.{module}"]
    inherited = [lock]
    if listener is not None:
        command += ["--listen", str(listener)]
        inherited.append(listener)
    return Child(name=name, command=command, log=layout.logs / f"{name}.log", inherited=tuple(inherited))


def _redis(layout: HomeLayout, lock: int) -> Child:
    guard = Path(__file__).resolve().parents[1] / "processes" / "guard.py"
    return Child(
        name=REDIS,
        command=[sys.executable, "-I", "-S", str(guard)],
        log=layout.logs / "redis.log",
        inherited=(lock,),
        guarded_program=tuple(server_command(layout.redis_socket, layout.redis_data)),
    )
