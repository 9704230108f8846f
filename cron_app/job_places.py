"""Where a job may work: its workspace, the folder inside it, and the agent there. Each is looked at as it is now.

A run looks again (`run_place`): folders and agents may go at any time after a job was saved.
"""

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
    if ".." in Path(asked_for).parts:
        raise BadRequest("workingDir is a folder inside the workspace, without '..'.", code="folder_outside")
    folder = working_folder(root, asked_for)
    if folder is None:
        return None
    relative = str(folder.relative_to(root.resolve()))
    if column_text(relative) != relative:
        raise BadRequest("The folder's name is not valid UTF-8. Rename it first.", code="bad_path")
    return relative


def working_folder(workspace: Path, working_dir: str | None) -> Path | None:
    """The real path of the job's folder; None for the workspace's root. Raises BadRequest."""
    if not working_dir or working_dir == ".":
        return None
    missing = BadRequest(f"folder not found: {working_dir}", code="folder_missing")
    try:
        folder = (workspace / working_dir).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        raise missing from None
    if not folder.is_dir():
        raise missing
    if not is_inside(folder, workspace.resolve()):
        raise BadRequest(f"The folder {working_dir} lies outside the workspace.", code="folder_outside")
    return None if folder == workspace.resolve() else folder


def check_agent(agent_id: str, root: Path) -> None:
    """Raises what `load_agent` does, and BadRequest for an agent that only Halo itself starts."""
    agent = load_agent(agent_id, root, settings.HALO_HOME)
    if agent.internal:
        raise BadRequest(
            f"The agent '{agent_id}' works for Halo itself and cannot be given jobs. Pick another one.",
            code="agent_internal",
        )
