"""shell_exec: answers, limits, environment, shutdown. What happens to processes is in test_processes."""

import asyncio
import os
import time
import tracemalloc
from pathlib import Path

import pytest

from agents_app.engine.texts import COMMAND_CUT_RESTART
from agents_app.tools.base import ToolLimits
from agents_app.tools.environment import is_secret
from agents_app.tools.shell_exec import NOT_RUN, ShellExec
from tests.agents_app.tools.conftest import Bench


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("printf 'a\\nb\\nc\\n' | wc -l; echo done >&2", "3\n\nSTDERR: done"),
        ("true", "(no output)"),
        ("echo '  indented'; echo", "  indented"),
        ("pwd", "{workspace}"),
        ("printf '\\xff\\0'", "\ufffd\ufffd"),
        ("printf 'a\\u2028b\\r\\nc'", "a\u2028b\r\nc"),
        ("[[ $BASH_VERSION ]] && echo bash", "bash"),
        ("cat", "(no output)"),
    ],
)
async def test_answers(bench: Bench, command: str, expected: str) -> None:
    assert await bench.text("shell_exec", command=command) == expected.format(workspace=bench.workspace)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("exit 3", "__TOOL_ERROR__\nCommand failed: exit 3 (exit code 3)"),
        ("echo out; echo err >&2; exit 1", "(exit code 1)\nout\n\nSTDERR: err"),
        ("no_such_command_here", "(exit code 127)\nSTDERR: "),
        ("kill -SEGV $$", "(ended by SIGSEGV)"),
        ("  ", "__TOOL_WARN__\nError: the command is empty or holds a NUL character."),
        ("echo a\0b", "__TOOL_WARN__\nError: the command is empty or holds a NUL character."),
        ("true " + "x" * 200_000, "the command line is too long for the system"),
    ],
)
async def test_failures(bench: Bench, command: str, expected: str) -> None:
    assert expected in await bench.error("shell_exec", command=command)


async def test_a_missing_workspace_is_named(bench: Bench) -> None:
    bench.workspace.rmdir()
    text = await bench.error("shell_exec", command="true")
    assert f"ENOENT: no such file or directory, start a command in '{bench.workspace}'" in text


async def test_S20_surrogates_in_a_command_and_in_its_output(bench: Bench) -> None:
    assert await bench.text("shell_exec", command="echo '\ud83d'") == "\ufffd"
    program = "import sys; sys.stdout.buffer.write('\\ud83d'.encode('utf-8', 'surrogatepass'))"
    text = await bench.text("shell_exec", command=f'python3 -c "{program}"')
    assert set(text) == {"\ufffd"} and text.encode()


async def test_output_is_bounded_while_it_is_read(bench: Bench) -> None:
    tracemalloc.start()
    text = await bench.text("shell_exec", command="yes | head -c 200M")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    limit = ToolLimits().shell_output_bytes
    assert text.startswith("y\ny\n") and text.endswith("[Output cut: only the first 5.0 MB were kept.]")
    assert limit - 10 < len(text) < limit + 100
    assert peak < 8 * limit  # the bytes, their text, and the copies made in passing


async def test_the_limit_is_for_both_streams_together_and_cuts_no_character(bench: Bench) -> None:
    small = bench.within(shell_output_bytes=1001)
    text = await small.text("shell_exec", command="for i in $(seq 1000); do printf 'é'; printf x >&2; done")
    assert "\ufffd" not in text and len(text.encode()) < 1100 and "[Output cut" in text


async def test_the_environment_holds_no_secret_and_nothing_that_waits_for_a_person(bench: Bench) -> None:
    secret = "s3cret-value"
    names = (
        "HALO_PASSWORD", "HALO_DATABASE_URL", "DJANGO_SETTINGS_MODULE", "CELERY_BROKER_URL", "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL", "DEEPSEEK_API_KEY", "gemini_api_key",
        "AWS_BEARER_TOKEN_BEDROCK", "DATABASE_URL", "REDIS_URL", "SECRET_KEY",
    )  # fmt: skip
    assert all(is_secret(name) for name in names)
    inherited = {"PATH": os.environ["PATH"], "HOME": str(bench.home), "MY_TOOL": "kept", **dict.fromkeys(names, secret)}
    lines = (await bench.having(environ=inherited).text("shell_exec", command="env")).split("\n")
    assert not any(secret in line for line in lines)
    for line in (
        "MY_TOOL=kept", "PAGER=cat", "GIT_PAGER=cat", "GIT_EDITOR=true", "EDITOR=true", "VISUAL=true", "TERM=dumb",
        "GIT_TERMINAL_PROMPT=0", "DEBIAN_FRONTEND=noninteractive",
    ):  # fmt: skip
        assert line in lines


T5 = [
    ("git init -q . && echo a > f && git add f && git commit", False),
    ("git init -q . && seq 200 > f && git add f && {me} commit -qm one && git log -p", True),
    ("git clone https://127.0.0.1:9/private.git", False),
    ("sudo -k ls || exit 1", False),
    ("ssh -o ConnectTimeout=2 -p 9 127.0.0.1", False),
    ("python3", True),
    ("read x", False),
    ("cat < /dev/tty", False),
    ("read -p 'Password: ' x < /dev/tty", False),
    ("less /etc/passwd", True),
    ("python3 -c 'import getpass; getpass.getpass()'", False),
]


@pytest.mark.parametrize(("command", "succeeds"), T5)
async def test_T5_what_would_ask_a_person_ends_in_seconds(bench: Bench, command: str, succeeds: bool) -> None:
    me = "git -c user.name=a -c user.email=a@example.org"
    async with asyncio.timeout(20):
        result = await bench.tool("shell_exec", command=command.replace("{me}", me))
    assert result.is_error is not succeeds, result.text


async def test_T5_a_rebase_goes_on_with_the_messages_it_has(bench: Bench) -> None:
    script = """
        git init -q -b main . && git config user.name a && git config user.email a@example.org
        commit() { echo "$1" > f && git add f && git commit -qm "$1"; }
        commit base; git checkout -q -b side; commit side; git checkout -q main; commit main; git checkout -q side
        git rebase main; echo both > f; git add f; git rebase --continue && git log --format=%s
    """
    text = await bench.text("shell_exec", command=script)
    assert "side\nmain\nbase" in text


async def test_T5_npm_init_ends(bench: Bench) -> None:
    command = "command -v npm >/dev/null || exit 9; npm_config_update_notifier=false npm init"
    async with asyncio.timeout(50):
        await bench.tool("shell_exec", command=command)


@pytest.mark.parametrize("level", ["workspace", "readonly"])
async def test_without_full_access_no_command_is_run(bench: Bench, level) -> None:
    text = await bench.at(level).error("shell_exec", command="touch here")
    assert text.startswith("__TOOL_ERROR__\nError: command not run: this session has limited access")
    assert "bwrap" not in text and not (bench.workspace / "here").exists() and not bench.watch.begun


async def test_nothing_is_started_once_shutdown_has_begun(bench: Bench) -> None:
    text = await bench.having(shutting_down=lambda: True).error("shell_exec", command="touch here")
    assert text.split("\n", 1)[1] == NOT_RUN
    assert not (bench.workspace / "here").exists()


async def test_a_command_killed_by_the_shutdown_says_that_it_was_cut_off(bench: Bench) -> None:
    begun = time.monotonic()
    # The flag goes up a little after the signal came.
    late = bench.having(shutting_down=lambda: time.monotonic() > begun + 0.05 and (bench.workspace / "hit").exists())
    command = "echo partial; echo oops >&2; touch hit; sleep 0.05; kill -TERM $$; sleep 9"

    async def run() -> str:
        return await late.error("shell_exec", command=command)

    # Not shutting down when it starts: the flag needs the file.
    text = await run()
    assert text == f"__TOOL_ERROR__\n{COMMAND_CUT_RESTART}\nOutput so far:\npartial\n\nSTDERR: oops"


async def test_an_ordinary_exit_during_the_shutdown_reads_as_always(bench: Bench) -> None:
    flag = bench.workspace / "hit"
    late = bench.having(shutting_down=flag.exists)
    assert await late.text("shell_exec", command="touch hit; echo fine") == "fine"
    flag.unlink()
    assert "(exit code 4)" in await late.error("shell_exec", command="touch hit; exit 4")


def test_the_description_names_the_limit_and_the_way_round_it() -> None:
    text = ShellExec(ToolLimits(shell_timeout_s=90)).description
    assert "90 seconds" in text and "nohup <command> > run.log 2>&1 &" in text


async def test_a_killed_command_outside_a_shutdown_is_a_failed_command(bench: Bench) -> None:
    text = await bench.error("shell_exec", command="echo x; kill -TERM $$; sleep 9")
    assert text == "__TOOL_ERROR__\nCommand failed: echo x; kill -TERM $$; sleep 9 (ended by SIGTERM)\nx"


async def test_commands_may_not_reach_our_descriptors(bench: Bench, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        text = await bench.text("shell_exec", command="ls -l /proc/self/fd 2>/dev/null || ls /dev/fd")
    assert "secret" not in text
