"""Looking through all sessions of a workspace, files and rows: the work of `check-sessions`. Mends nothing.

What can be wrong inside a session's files is `log/check.py`'s subject; here are the rows, and what lies about beside
sessions. Synchronous.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from halo_project.errors import NotFound
from halo_project.layout import WorkspaceLayout, resolve_workspace
from sessions_app.identifiers import is_safe_segment, leaf
from sessions_app.log.check import Problem, check_files, not_regular
from sessions_app.log.legacy.lock import is_held
from sessions_app.migration_notes import read_losses
from sessions_app.models import AgentSession, QueuedMessage, SessionRun, Workspace
from sessions_app.opening import system_reason
from sessions_app.session_files import NOT_REGULAR, SessionFiles, sessions_dir, sessions_on_disk
from sessions_app.workspaces import find_workspace


@dataclass(slots=True)
class Report:
    """What was found, in the order of the files; after a repair also what was done, as (session, sentence)."""

    sessions: int = 0
    problems: list[Problem] = field(default_factory=list)
    repaired: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return all(problem.note for problem in self.problems)


def check(path: str) -> Report:
    """Read every session of a workspace. Raises NotFound, BadRequest, OSError."""
    root, workspace = workspace_at(path)
    rows = SessionRows(workspace)
    report = Report()
    on_disk = list(sessions_on_disk(sessions_dir(root)))
    for files in on_disk:
        report.sessions += files.has("ui", "raw", "legacy")
        report.problems += check_session(files, rows)
    report.problems += _twins(on_disk)
    report.problems += rows.without_files([*on_disk, *sessions_on_disk(settings.HALO_HOME.internal_sessions)])
    report.problems += rows.orphans()
    report.problems += [
        Problem("lost", str(loss.get("session", "")), loss["loss"], note=True) for loss in read_losses(root)
    ]
    return report


_CONTENT = ("ui", "raw", "legacy", "legacy_temporary")


def workspace_at(path: str) -> tuple[Path, Workspace | None]:
    """The real path of a folder and its row, if there is one. Raises NotFound for one that was never a workspace."""
    root = resolve_workspace(path)
    if root != settings.HALO_HOME.internal_sessions and not WorkspaceLayout(root).exists():
        raise NotFound(f"{root} has no .halo folder: there are no sessions in it.", code="not_a_workspace")
    return root, find_workspace(str(root))


def check_session(files: SessionFiles, rows: "SessionRows") -> list[Problem]:
    """What is wrong with one session; what the system refuses to read of it is among that."""
    found: dict[Problem, None] = {}  # in this order, each once
    try:
        for problem in _problems(files, rows):
            found[problem] = None
    except OSError as error:
        reason = system_reason(error, files.seg)
        found[Problem("unreadable", files.name, f"{reason}. Put the file right, then check again")] = None
    return list(found)


def _problems(files: SessionFiles, rows: "SessionRows") -> Iterator[Problem]:
    name = files.name
    session = rows.find(files)
    running = session is not None and rows.is_running(session, ask=files.has("temporary"))
    for path in files.kinds[NOT_REGULAR]:
        yield not_regular(path, name)
    if not running:  # else they are its own, made for the length of a write
        yield from (Problem("temporary", name, f"{path.name} was left by a crash") for path in files.kinds["temporary"])
    if files.has("migrating") and not is_held(files.paths.migrating):
        yield Problem("temporary", name, f"{files.paths.migrating.name} was left by a crash")
    yield from _check_legacy(files)
    for path in files.kinds["set_aside"]:
        yield Problem("set_aside", name, f"{path.name} holds a file that was set aside", note=True)
    if not files.has("ui", "raw"):
        if files.has("segment") and not files.has(NOT_REGULAR):
            yield Problem("half", name, "archive segments are there without a log")
        return
    yield from check_files(files.as_listed, name, running=running)
    if session is None:
        yield Problem("no_row", name, f"files without a row: {_why_no_row(files, rows)}")


def _why_no_row(files: SessionFiles, rows: "SessionRows") -> str:
    if not (is_safe_segment(files.seg) and is_safe_segment(files.agent_id)):
        return "their name cannot be the id of a session or an agent, so none can be made; rename them"
    other = rows.of_another_agent(files)
    if other is not None:
        return (
            f"another agent's session, {other.agent_id}/{other.session_id}, has this id, and an id has one row; "
            "rename the files of one of them, then run `halo sessions index`, or delete them"
        )
    return "it is in no list (`halo sessions index` makes rows)"


def _check_legacy(files: SessionFiles) -> list[Problem]:
    name, converted = files.name, files.has("ui")
    found = []
    if files.has("legacy"):
        sentence = "1.x files were left beside the converted ones" if converted else "not converted from 1.x yet"
        found.append(Problem("legacy", name, f"{sentence} (`halo sessions migrate v1 v2` does it, or says why not)"))
    elif files.has("legacy_archive"):
        names = ", ".join(path.name for path in files.kinds["legacy_archive"])
        found.append(
            Problem("legacy_archive", name, f"a 1.x archive that could not be read is kept: {names}", note=True)
        )
    if files.has("legacy_temporary"):
        names = ", ".join(path.name for path in files.kinds["legacy_temporary"])
        found.append(Problem("legacy", name, f"temporary 1.x files: {names}"))
    return found


def _twins(on_disk: Iterable[SessionFiles]) -> list[Problem]:
    folders: dict[str, list[str]] = defaultdict(list)
    for files in on_disk:
        if files.has(*_CONTENT):
            folders[files.seg.lower()].append(files.name)
    return [
        Problem("twins", names[0], f"the same session in several folders: {', '.join(names)}")
        for names in folders.values()
        if len(names) > 1
    ]


class SessionRows:
    """The rows of a workspace, by the files they name. running: primary keys of the sessions at work."""

    def __init__(self, workspace: Workspace | None):
        sessions = [] if workspace is None else AgentSession.objects.filter(workspace=workspace, deleting=False)
        self._by_files = {(session.agent_id, session.leaf_key): session for session in sessions}
        self._by_leaf = {leaf(session.session_id): session for session in self._by_files.values()}
        self.running = set(SessionRun.objects.filter(session__workspace=workspace).values_list("session_id", flat=True))
        waiting = QueuedMessage.State.QUEUED, QueuedMessage.State.FAILED
        self._waiting = set(
            QueuedMessage.objects.filter(workspace=workspace, state__in=waiting).values_list("session_id", flat=True)
        )

    def find(self, files: SessionFiles) -> AgentSession | None:
        return self._by_files.get((files.agent_id, files.seg.lower()))

    def of_another_agent(self, files: SessionFiles) -> AgentSession | None:
        """A session of another agent that bears the id these files would give a row."""
        found = self._by_leaf.get(files.seg)
        return found if found is not None and found.agent_id != files.agent_id else None

    def is_running(self, session: AgentSession, *, ask: bool) -> bool:
        """Whether a run holds it. ask: the database once more, for one that has begun since the rows were read."""
        return session.pk in self.running or (ask and SessionRun.objects.filter(session=session).exists())

    def without_files(self, on_disk: Iterable[SessionFiles]) -> list[Problem]:
        """Rows whose words are nowhere; one that has just been made, and whose first message waits, has none yet.

        on_disk: of the workspace, and of the internal agents: 1.x gave their sessions a second row in the workspace.
        """
        known = {(files.agent_id, files.seg.lower()) for files in on_disk if files.has(*_CONTENT, NOT_REGULAR)}
        return [
            self._without_files(session)
            for key, session in self._by_files.items()
            if key not in known and session.pk not in self._waiting and session.pk not in self.running
        ]

    @staticmethod
    def _without_files(session: AgentSession) -> Problem:
        name = f"{session.agent_id}/{session.session_id}"
        if not session.exchange_count:  # 1.x made the row when a session was opened
            sentence = "a row without files: nothing was said here; delete it if you like"
            return Problem("no_files", name, sentence, note=True)
        if session.agent_id.startswith("__"):  # 1.x kept these files elsewhere, and a second row here
            folder = settings.HALO_HOME.internal_sessions
            return Problem("no_files", name, f"a row without files: 1.x kept them in its own {folder.name}", note=True)
        return Problem("no_files", name, "a row without files: put the files back, or delete the session")

    def orphans(self) -> list[Problem]:
        return [
            Problem(
                "orphan",
                f"{session.agent_id}/{session.session_id}",
                f"its parent {session.lost_parent_id} does not exist: listed at the top",
                note=True,
            )
            for session in self._by_files.values()
            if session.lost_parent_id
        ]
