"""The 1.x workspaces that the original left behind: writable copies of them, and what their manifests say."""

import atexit
import json
import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from sessions_app.log.paths import SessionPaths

ARCHIVE = Path(__file__).parents[1] / "golden" / "halo-1x.tar.xz"
FAULTY = "v1-faulty/ws-faulty"


@cache
def legacy_root() -> Path:
    """The folders `v1` and `v1-faulty`, unpacked once a test run. Only to be read: tests change copies."""
    root = Path(tempfile.mkdtemp(prefix="halo-tests-1x-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(root, filter="data")  # gives files and folders modes that we may write
    # A folder named like a session; it was lost when the fixtures were stored.
    (root / FAULTY / ".halo/sessions/default/dirnamed.json").mkdir(exist_ok=True)
    return root


@cache
def manifest(name: str) -> dict[str, Any]:
    """What the makers of `v1` or `v1-faulty` noted about it."""
    return json.loads((legacy_root() / name / "MANIFEST.json").read_bytes())


def peer_answers(folder: str) -> dict[str, Any]:
    """What the original answered over HTTP and WebSocket about a workspace of `v1`: what a person saw before."""
    return json.loads((legacy_root() / f"v1/PEER_ANSWERS_{folder}.json").read_bytes())


def manifest_sessions(folder: str) -> list[dict[str, Any]]:
    """The manifest's entries of one workspace of `v1` (or `internal-sessions`) that have a session file."""
    if folder == "internal-sessions":
        return manifest("v1")["internal"]
    (workspace,) = (each for each in manifest("v1")["workspaces"] if each["folder"] == folder)
    return [session for session in workspace["sessions"] if session["files"]]


def copy_of(name: str, tmp_path: Path) -> Path:
    """A copy of a folder of the fixtures (`v1/ws-a`) in `tmp_path`, times of change kept."""
    copy = tmp_path / Path(name).name
    shutil.copytree(legacy_root() / name, copy)
    return copy


def copy_of_session(name: str, agent_id: str, seg: str, tmp_path: Path) -> SessionPaths:
    """A copy of the files of one session of a workspace, and of nothing else."""
    sessions = legacy_root() / name / ("" if name.endswith("internal-sessions") else ".halo/sessions")
    directory = tmp_path / agent_id
    directory.mkdir(exist_ok=True)
    for path in SessionPaths(sessions / agent_id, seg).files():
        shutil.copy2(path, directory)
    return SessionPaths(directory, seg)


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path in it."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def states(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below a folder with its inode, its time of change and its content: equal when nothing touched it."""
    return {
        name: ((stat := (directory / name).stat()).st_ino, stat.st_mtime_ns, data)
        for name, data in contents(directory).items()
    }
