"""An agent's files as texts that a person edits: finding them in a scope, reading, checking and writing them.

Writing leaves a file alone that changed since it was read. What agent.yaml may say is left to `agent_yaml`.
"""

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agents_app.config.agent_yaml import AgentConfig, Scope, parse_agent
from agents_app.config.beneath import lay_folder, write_beneath
from agents_app.config.errors import AgentInvalid, AgentNotFound, ConfigFileInvalid
from agents_app.config.files import BUNDLED, is_folder
from agents_app.config.scopes import Place
from agents_app.config.yaml_file import parse_document
from halo_project.errors import BadRequest, Conflict, HaloError
from sessions_app.identifiers import check_agent_id

AGENT_YAML = "agent.yaml"
AGENT_MD = "AGENT.md"
SCOPE_FILES = ("USER.md", "INSTRUCTIONS.md", "INDEX.md")
MAX_YAML_BYTES = 256 * 1024
MAX_TEXT_BYTES = 1024 * 1024
_MAX_COPY_BYTES = 32 * 1024 * 1024

# Two people who save one file at the same moment: the second is told, not overwritten.
_WRITING = threading.Lock()


@dataclass(frozen=True, slots=True)
class FileContent:
    """`digest` changes with the content; None where there is no file."""

    path: Path
    text: str = ""
    digest: str | None = None


def agent_folder(agent_id: str, place: Place) -> Path:
    """Where the scope has the agent; a bundled one counts as the installation's. Raises BadRequest, AgentNotFound."""
    check_agent_id(agent_id)
    own = place.agents / agent_id
    bundled = BUNDLED / "agents" / agent_id
    if is_folder(own):
        return own
    if place.scope == "global" and is_folder(bundled):
        return bundled
    raise AgentNotFound(agent_id)


def read_content(path: Path, most: int) -> FileContent:
    """Raises ConfigFileInvalid for what cannot be shown as text."""
    try:
        data = _read_at_most(path, most + 1) if path.is_file() else None
    except OSError as error:
        raise ConfigFileInvalid(path, f"it cannot be read ({error.strerror}).") from error
    if data is None:
        return FileContent(path)
    if len(data) > most:
        raise ConfigFileInvalid(path, f"this file is larger than {most // 1024} KB; change it with an editor.")
    try:
        return FileContent(path, data.decode("utf-8-sig"), hashlib.sha256(data).hexdigest())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigFileInvalid(path, "this file is not UTF-8 text.", line=line) from error


def _read_at_most(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most)


def encoded(text: str, most: int) -> bytes:
    """The text as it is written. Raises HaloError: too large, or not text."""
    try:
        data = text.replace("\r\n", "\n").encode()
    except UnicodeEncodeError as error:
        raise BadRequest("The text holds a character that no file can have.", code="bad_text") from error
    if len(data) > most:
        raise HaloError(f"The text is larger than {most // 1024} KB.", code="too_large", status=413)
    return data


def check_yaml(agent_id: str, scope: Scope, path: Path, data: bytes) -> AgentConfig:
    """What this text says, whether it is written there yet or not. Raises AgentInvalid with the line of each fault."""
    try:
        document = parse_document(path, data)
    except ConfigFileInvalid as error:
        raise AgentInvalid(agent_id, path, [error.sentence]) from error
    return parse_agent(document, agent_id=agent_id, scope=scope, path=path, agent_md=None)


def write_agent_file(agent_id: str, place: Place, name: str, data: bytes, base: str | None) -> FileContent:
    """Write one file of an agent. One that only a scope below has is copied as a whole first, for a folder counts as a
    whole. `base`: the digest of what was read before; None where that is not to be compared.

    Raises AgentNotFound, Conflict (file_changed, outside_scope), Forbidden.
    """
    check_agent_id(agent_id)
    folder = place.agents / agent_id
    source = folder if is_folder(folder) else _below(agent_id, place)

    def write() -> None:
        if source == folder:
            write_beneath(place.root, folder / name, data, within=folder)
        else:
            lay_folder(place.root, folder, {**_files_of(source), name: data})

    return _guarded(source / name, base, write, folder / name)


def write_scope_file(place: Place, name: str, data: bytes, base: str | None) -> FileContent:
    """USER.md, INSTRUCTIONS.md or INDEX.md. Raises as `write_agent_file`."""
    path = place.root / name
    return _guarded(path, base, lambda: write_beneath(place.root, path, data), path)


def _guarded(read_from: Path, base: str | None, write: Callable[[], None], path: Path) -> FileContent:
    with _WRITING:
        if base is not None and read_content(read_from, MAX_TEXT_BYTES).digest != base:
            raise Conflict(f"{path} changed since it was read; read it again.", code="file_changed")
        write()
        return read_content(path, MAX_TEXT_BYTES)


def _below(agent_id: str, place: Place) -> Path:
    found = next((folder / agent_id for folder in place.agents_below if is_folder(folder / agent_id)), None)
    if found is None:
        raise AgentNotFound(agent_id)
    return found


def _files_of(folder: Path) -> dict[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    if sum(path.stat().st_size for path in found) > _MAX_COPY_BYTES:
        raise Conflict(f"{folder} is too large to be copied; copy it yourself, then change the copy.", code="too_large")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
