"""What commands of the lower access levels try in their sandbox: keys, processes, rights, sockets, the network. T12."""

import asyncio
import os
import shutil
import socket
from pathlib import Path

from agents_app.tools.base import SandboxRules
from agents_app.tools.sandbox import NO_SANDBOX
from tests.agents_app.tools.escape_place import LEVELS, NEEDLE, Place, make_place
from tests.support.sandbox import sandbox_or_skip


async def test_readonly_changes_nothing_at_all(base: Path) -> None:
    sandbox_or_skip()
    place = make_place(base, "readonly", sandboxed=True)
    before = place.tree()
    text = await place.shell(
        "echo x > made; touch own.txt; echo y >> own.txt; rm own.txt; mv own.txt b; mkdir d; ln own.txt c; ln -s a b; "
        "chmod 777 own.txt .; chown 1 own.txt; setfattr -n user.x -v y own.txt; truncate -s 0 own.txt; "
        "echo over > /tmp/f && cat /tmp/f"
    )
    assert place.tree() == before and "over" in text


async def test_a_workspace_session_changes_its_workspace(writing: Place) -> None:
    await writing.shell(
        "echo new > made; mkdir -p a/b; mv own.txt a/b/; echo k > .halo/INDEX.md; chmod 755 a; "
        "echo m > .halo/memory/note; echo m > .halo/memo"
    )
    assert (writing.workspace / "made").read_text() == "new\n" and (writing.workspace / "a/b/own.txt").exists()
    assert (writing.workspace / ".halo/INDEX.md").read_text() == "k\n"
    assert (writing.workspace / ".halo/memory/note").exists() and not (writing.workspace / ".halo/memo").exists()


NAMES = (
    "HALO_PASSWORD", "HALO_HOME", "DJANGO_SETTINGS_MODULE", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN",
    "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "PGPASSWORD",
    "DATABASE_URL", "SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "KUBECONFIG",
    "NPM_TOKEN", "MY_SERVICE_PASS", "deepseek_key", "LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "ENV", "PYTHONPATH",
    "BASH_FUNC_ls%%", "PROMPT_COMMAND", "IFS", "GIT_SSH_COMMAND", "TMPDIR", "XAUTHORITY", "NODE_OPTIONS", "x",
)  # fmt: skip


async def test_T12_no_key_in_the_environment_of_a_command(boxed: Place) -> None:
    inherited = {
        **dict.fromkeys(NAMES, NEEDLE), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC",
        "USER": "someone", "http_proxy": f"http://me:{NEEDLE}@127.0.0.1:1", "HTTPS_PROXY": "http://127.0.0.1:2",
    }  # fmt: skip
    keyed = boxed.having(environ=inherited)
    text = await keyed.shell("env; echo; cat /proc/*/environ | tr '\\0' '\\n'; ps auxeww")
    assert NEEDLE not in text
    for line in (
        f"HOME={boxed.base}/home", f"PATH={boxed.base}/home/.local/bin:{os.environ['PATH']}", "TERM=dumb", "TZ=UTC",
        "LC_ALL=C.UTF-8", "USER=someone", "GIT_PAGER=cat", "HTTPS_PROXY=http://127.0.0.1:2",
    ):  # fmt: skip
        assert line in text.split("\n")


async def test_processes_outside_are_neither_seen_nor_reached(boxed: Place) -> None:
    me = os.getpid()
    text = await boxed.shell(
        f"ls /proc | grep -x {me}; kill -0 {me} && echo reached; kill -TERM -1; cat /proc/1/environ /proc/*/environ | "
        "tr '\\0' '\\n' | grep -c HALO_; ls /proc | grep -c '^[0-9]*$'; ls -l /proc/1/root/.halo-x /proc/*/root"
    )
    assert "reached" not in text and f"\n{me}\n" not in text
    assert int(next(line for line in text.split("\n") if line.isdigit() and line != "0")) < 12


async def test_no_way_to_new_rights(boxed: Place) -> None:
    script = """
        grep -E 'Cap(Prm|Eff|Bnd)' /proc/self/status; grep NoNewPrivs /proc/self/status; id -u
        mount -t tmpfs x /mnt && echo ESCAPED; umount ~/.halo && echo ESCAPED
        umount -l .halo/sessions && echo ESCAPED
        unshare -Urm sh -c 'umount -l .halo/sessions; umount -l ~/.halo; cat .halo/sessions/agent/* ~/.halo/secrets/*'
        unshare -Urm sh -c 'mkdir /tmp/r; mount --bind / /tmp/r && cat /tmp/r$HOME/.halo/secrets/*'
        chroot / true && echo ESCAPED; nsenter -t 1 -m true && echo ESCAPED; mknod /tmp/d b 8 0 && cat /tmp/d
        : >> /proc/sys/kernel/core_pattern && echo ESCAPED; : >> /proc/sysrq-trigger && echo ESCAPED
        : >> /sys/kernel/uevent_helper && echo ESCAPED; cat /etc/shadow | grep -c : ; cat /proc/kcore | head -c1
        sudo -n true && echo ESCAPED; su -c true </dev/null && echo ESCAPED; hostname halo-x && echo ESCAPED
    """
    text = await boxed.shell(script)
    assert "ESCAPED" not in text and f"{NEEDLE} of" not in text
    assert "CapEff:\t0000000000000000" in text and "CapBnd:\t0000000000000000" in text and "NoNewPrivs:\t1" in text
    assert "\n0\n" in text  # lines of /etc/shadow


async def test_sockets_of_the_host_cannot_be_reached(boxed: Place) -> None:
    """Halo's own, one among the system's where we may make it, and one that somebody put somewhere."""
    servers = []
    places = [boxed.base / "home/.halo/run/s", boxed.base / "sock", Path("/run/halo-escape-test")]
    for path in places:
        if not os.access(path.parent, os.W_OK):
            continue
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        server.listen()
        servers.append((server, path))
    try:
        program = (
            "import os, socket, sys\nfor path in sys.argv[1:]:\n s = socket.socket(socket.AF_UNIX)\n try:\n"
            "  os.chdir(os.path.dirname(path)); s.connect(os.path.basename(path)); print('connected', path)\n"
            " except OSError as e: print(e)\n"
        )
        (boxed.workspace / "connect.py").write_text(program)
        text = await boxed.shell("python3 connect.py " + " ".join(str(path) for _, path in servers))
        assert "connected" not in text and len(text.split("\n")) >= len(servers)
        assert (await boxed.shell("ls /run /var/run/docker.sock; ls /run | wc -l")).count("docker.sock") <= 1
    finally:
        for server, path in servers:
            server.close()
            path.unlink()


async def test_the_network_is_closed_to_readonly_and_where_the_settings_say_so(base: Path) -> None:
    sandbox_or_skip()
    place = make_place(base, "workspace", sandboxed=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo connected"
        assert await place.shell(command) == "connected"
        closed = place.having(rules=SandboxRules(network=False))
        for shut in (closed, place.having(access="readonly")):
            assert "connected" not in await shut.shell(command)


async def test_what_halo_makes_while_a_command_runs_stays_hidden(boxed: Place) -> None:
    """A new session file, a database's side file, a key put in place anew: none appears in a running command."""
    shutil.rmtree(boxed.workspace / ".halo/evo")
    late = [
        "work/.halo/sessions/agent/new.raw.jsonl", "work/.halo/evo/late.json", "home/.halo/halo.sqlite3-journal",
        "home/.halo/global/cron.db", "home/.pgpass", "other/late.txt",
    ]  # fmt: skip
    paths = " ".join(f"'{boxed.base / name}'" for name in [*late, "home/.netrc"])
    task = asyncio.create_task(
        boxed.tool("shell_exec", command=f"for i in 1 2 3 4 5 6 7 8; do sleep 0.2; cat {paths}; done")
    )
    await asyncio.sleep(0.8)
    for name in late:
        (boxed.base / name).parent.mkdir(exist_ok=True)
        (boxed.base / name).write_text(f"{NEEDLE} late\n")
    fresh = boxed.base / "home/fresh"
    fresh.write_text(f"{NEEDLE} anew\n")
    fresh.rename(boxed.base / "home/.netrc")
    text = (await task).text
    assert f"{NEEDLE} late" not in text and f"{NEEDLE} anew" not in text and "No such file" in text


async def test_T7_without_a_sandbox_a_command_is_refused_with_a_remedy(base: Path) -> None:
    for level in LEVELS:
        place = make_place(base, level, sandboxed=False)
        text = await place.shell("touch here")
        assert text.split("\n", 1)[1] == NO_SANDBOX and "bubblewrap" in text and "--" not in text
    assert not (base / "work/here").exists()


async def test_a_failing_command_tells_nothing_about_the_sandbox(boxed: Place) -> None:
    quick = boxed.having(limits=boxed.context.limits.__class__(shell_timeout_s=1))
    commands = (
        (boxed, "no-such-command"),
        (boxed, "exit 1"),
        (boxed, "kill -9 $$"),
        (quick, "sleep 20"),
        (boxed, "cat /proc/1/cmdline | tr '\\0' ' '; exit 3"),
    )
    texts = [(await where.tool("shell_exec", command=command)).text for where, command in commands]
    assert all(text.startswith("__TOOL_ERROR__\nCommand failed: ") for text in texts)
    for text in texts:
        for word in ("--ro-bind", "--tmpfs", "--unshare", "bwrap: ", str(boxed.base / "other")):
            assert word not in text
