"""`halo` itself: the list of its commands, their help, and an end of the output that nobody waits for."""

import subprocess
import sys
from pathlib import Path

import pytest

from halo_project.console import command_names
from tests.support.halo_process import ROOT, clean_environment

HALO = [sys.executable, "-c", "from halo_project.console import main; main()"]


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**clean_environment(), "HALO_HOME": str(tmp_path / "home")}
    return subprocess.run([*HALO, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)


def test_each_command_is_described_once(tmp_path: Path) -> None:
    done = run(tmp_path, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    listed = [line.split() for line in done.stdout.split("\n") if line.startswith("  ") and line[2] != " "]
    assert [line[0] for line in listed] == [name for name in command_names() if not name.endswith("-sessions")]
    assert all(len(line) > 3 for line in listed)


def test_a_misspelt_command(tmp_path: Path) -> None:
    done = run(tmp_path, "modls")
    assert done.returncode == 2
    assert done.stderr == "halo: There is no command 'modls'. Did you mean `models`? `halo --help` lists them.\n"


@pytest.mark.parametrize("name", command_names())
def test_help_shows_what_is_ours(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, name, "--help")
    assert done.returncode == 0 and "--help" in done.stdout
    for theirs in ("--settings", "--pythonpath", "--traceback", "--verbosity", "--no-color", "--skip-checks"):
        assert theirs not in done.stdout


@pytest.mark.parametrize("arguments", [("models", "list", "-v"), ("agents",), ("skills", "--json")])
def test_a_reader_that_goes_is_no_error(arguments: tuple[str, ...], tmp_path: Path) -> None:
    env = {**clean_environment(), "HALO_HOME": str(tmp_path / "home")}
    process = subprocess.Popen(
        [*HALO, *arguments], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()  # before it has said anything
    told = process.stderr.read()
    assert (process.wait(60), told) == (141, "")
    process.stderr.close()
