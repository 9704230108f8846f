"""`make setup`: a virtual environment in `.venv` with exactly the locked dependencies and the `halo` command.

Standard library only, any Python from 3.11 on. Packages are installed by uv, which takes seconds; uv itself comes from
its own small lock by pip. Where uv cannot be had, pip installs everything, in minutes. A second run finds the stamps of
the first and does nothing.
"""

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
LOCKS = {"runtime": "requirements.lock", "dev": "requirements-dev.lock"}  # the second holds the first
LOADED_AT_START = """
import halo_project.supervisor.serve
from halo_project.processes import beat_main, web_server, worker_main
web_server.load(), worker_main.load(), beat_main.load()
import anthropic, openai, psycopg
"""
LOADED_BY_TESTS = (
    "import pytest, pytest_django, pytest_asyncio.plugin, hypothesis.strategies, websockets, redis.asyncio"
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Prepare .venv from the lock files.")
    parser.add_argument("--dev", action="store_true", help="with the tools for tests and lint")
    kind = "dev" if parser.parse_args().dev else "runtime"
    wanted = {name: _fingerprint(lock) for name, lock in LOCKS.items()}
    if _stamped("dev") == wanted["dev"] or _stamped(kind) == wanted[kind]:
        return
    _make_venv()
    _install(LOCKS[kind])
    _install_halo()
    _load_once(kind)
    for name in ("runtime", kind):
        _stamp(name).write_text(wanted[name])


def _fingerprint(lock: str) -> str:
    """Changes with the lock, with what the `halo` command is made of, and with the Python of the environment."""
    digest = hashlib.sha256(f"{sys.version_info[:3]} {sys.base_prefix}".encode())
    for name in (lock, "requirements-setup.lock", "pyproject.toml", "tools/bootstrap.py"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def _stamp(kind: str) -> Path:
    return VENV / f"halo-{kind}.stamp"


def _stamped(kind: str) -> str | None:
    works = PYTHON.exists() and (VENV / "bin" / "halo").exists()
    return _stamp(kind).read_text() if works and _stamp(kind).exists() else None


def _make_venv() -> None:
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit(
            f"halo: {sys.executable} has no venv module. Install it (Debian and Ubuntu: apt install python3-venv)"
            " or name another Python: make setup PYTHON=/path/to/python3.12"
        )
    config = VENV / "pyvenv.cfg"
    usable = config.exists() and f"version = {'.'.join(map(str, sys.version_info[:3]))}" in config.read_text()
    if not usable or subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True).returncode != 0:
        _say(f"making .venv with Python {'.'.join(map(str, sys.version_info[:3]))}")
        shutil.rmtree(VENV, ignore_errors=True)
        venv.create(VENV, with_pip=True, symlinks=True)


def _install(lock: str) -> None:
    _say(f"installing what {lock} lists")
    options = ["--require-hashes", "-r", lock]
    if _have_uv() and _run(UV, "pip", "install", "--quiet", "--python", PYTHON, *options):
        return
    _say("uv is not available here; pip installs instead, which takes some minutes")
    if not _run(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *options):
        sys.exit(f"halo: the packages of {lock} could not be installed; the lines above say why.")


def _have_uv() -> bool:
    pip = (PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    return _run(*pip, "--require-hashes", "--no-deps", "-r", "requirements-setup.lock") and UV.exists()


def _install_halo() -> None:
    """The `halo` command. Its packages stay where they are: a plain path entry, which costs nothing at each start."""
    options = ["--no-deps", "--no-build-isolation", "--editable", "."]
    if UV.exists():
        done = _run(UV, "pip", "install", "--quiet", "--python", PYTHON, "-C", "editable_mode=compat", *options)
    else:
        pip = (PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        done = _run(*pip, "--config-settings", "editable_mode=compat", *options)
    if not done:
        sys.exit("halo: the `halo` command could not be installed; the lines above say why.")


def _load_once(kind: str) -> None:
    """Have Python compile what a start loads, and only that: the first start is then as fast as the later ones.

    Compiling all 400 MB takes minutes. Where PYTHONDONTWRITEBYTECODE is set, every start would compile anew.
    """
    _say("compiling what a start loads")
    programs = [LOADED_AT_START, LOADED_BY_TESTS] if kind == "dev" else [LOADED_AT_START]
    with tempfile.TemporaryDirectory(prefix="halo-setup-") as home:
        env = {**os.environ, "HALO_HOME": home}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        for program in programs:
            subprocess.run([PYTHON, "-c", program], cwd=ROOT, env=env, capture_output=True)


def _run(*command: str | Path) -> bool:
    return subprocess.run([str(part) for part in command], cwd=ROOT).returncode == 0


def _say(text: str) -> None:
    print(f"halo: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
