"""Where a job works: its workspace, the folder inside it, and the agent there. Each is looked at as it is now.

A run looks again: folders and agents may go at any time after a job was saved.
"""

import os
from pathlib import Path

from django.conf import settings

from agents_app.config.agents import load_agent
from halo_project.errors import BadRequest
from halo_project.layout import refuse_home, resolve_workspace
from halo_project.real_paths import is_inside
from sessions_app.log.encode import column_text


def workspace_root(path: str) -> Path:
    """The real path of a folder that can be a job's workspace. Raises NotFound, BadRequest."""
    root = resolve_workspace(path)
    refuse_home(root, settings.HALO_HOME)
    if root == settings.HALO_HOME.internal_sessions.resolve():
        raise BadRequest(
            "Halo keeps the conversations of internal agents in this folder. Choose a workspace of your own.",
            code="workspace_internal",
        )
    if column_text(str(root)) != str(root):
        raise BadRequest("The folder's name is not valid UTF-8. Rename it first.", code="bad_path")
    return root


def folder_in(root: Path, asked_for: str) -> str | None:
    """The folder relative to the workspace, by its real path; None for the workspace itself. Raises BadRequest."""
    if "\0" in asked_for or ".." in Path(asked_for).parts:
        raise _bad_folder("workingDir is a folder inside the workspace, without '..' in its path.")
    try:
        folder = (root / asked_for).resolve()
        known, inside = folder.is_dir(), is_inside(folder, root)
    except (OSError, ValueError, RuntimeError):  # too long, half a character, a loop of links
        raise _bad_folder("This workingDir cannot be reached. Choose a folder inside the workspace.") from None
    if not inside:
        raise _bad_folder(f"The folder {asked_for} is outside the workspace. Choose one inside it.")
    if not known:
        raise _bad_folder(f"folder not found: {asked_for}. Choose a folder that exists inside {root}.")
    relative = os.path.relpath(folder, root.resolve())
    if column_text(relative) != relative:
        raise _bad_folder("The folder's name is not valid UTF-8. Rename it first.")
    return None if relative == "." else relative


def check_agent(agent_id: str, root: Path) -> None:
    """Raises what `load_agent` does, and BadRequest for an agent that only Halo itself starts."""
    agent = load_agent(agent_id, root, settings.HALO_HOME)
    if agent.internal:
        raise BadRequest(
            f"The agent '{agent_id}' works for Halo itself and cannot be given jobs. Pick another one.",
            code="agent_internal",
        )


def _bad_folder(message: str) -> BadRequest:
    return BadRequest(message, code="bad_working_dir")
