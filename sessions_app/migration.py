"""Converting every 1.x session of a workspace: the work of `migrate-sessions`.

Each session is converted under its own lock, as at its first opening; here stands which of them, in which folder, and
what becomes of their rows. Synchronous.
"""

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F

from halo_project.errors import Conflict, HaloError, NotFound
from halo_project.layout import WorkspaceLayout, resolve_workspace
from halo_project.schema import has_column, has_table
from sessions_app.identifiers import check_session_id, leaf, parent
from sessions_app.legacy_import import header_values, read_legacy_rows, usable
from sessions_app.log.encode import column_text
from sessions_app.log.legacy.convert import Conversion, convert
from sessions_app.log.legacy.document import LegacyHeader, LegacyUnreadable
from sessions_app.log.paths import SessionPaths
from sessions_app.migration_notes import note_losses
from sessions_app.models import AgentSession, Workspace
from sessions_app.opening import fill_row, system_reason
from sessions_app.runtime_lock import holder_of, own_server
from sessions_app.session_files import NOT_REGULAR, SessionFiles, sessions_dir, sessions_on_disk
from sessions_app.workspaces import internal_workspace, open_workspace

Progress = Callable[[int, int, str], None]  # how many are done, of how many, the name of the next


class ServerRuns(Conflict):
    """A live server holds the workspace: it converts what it opens, and would get in the way."""

    code = "server_running"


@dataclass(slots=True)
class Summary:
    """What became of the sessions. The lists hold (session, sentence); `bytes_read` counts 1.x files."""

    migrated: int = 0
    cleaned: int = 0
    skipped: int = 0
    bytes_read: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    losses: list[tuple[str, str]] = field(default_factory=list)

    def add(self, name: str, result: Conversion) -> None:
        setattr(self, result.outcome, getattr(self, result.outcome) + 1)
        self.bytes_read += result.bytes_read
        self.notes.extend((name, note) for note in result.notes)
        self.losses.extend((name, loss) for loss in result.losses)


def migrate(path: str, now: datetime, *, dry_run: bool = False, progress: Progress | None = None) -> Summary:
    """Convert the sessions of a workspace and of the internal agents. dry_run: say what would happen, write nothing.

    Raises NotFound (no workspace there), ServerRuns, BadRequest. What fails for one session stands in the summary.
    """
    root = resolve_workspace(path)
    internal = settings.HALO_HOME.internal_sessions
    if root != internal and not WorkspaceLayout(root).exists():
        raise NotFound(f"{root} has no .halo folder: there is nothing to migrate.", code="not_a_workspace")
    _refuse_beside_a_server(root)
    summary = Summary()
    places = [root, internal] if root != internal else [root]
    work = [(place, files) for place in places for files in sessions_on_disk(sessions_dir(place))]
    rows = {place: _Rows(place, now, summary, dry_run=dry_run) for place in places}
    twins = _folders_by_session(work)
    for done, (place, files) in enumerate(work):
        if progress is not None:
            progress(done, len(work), files.name)
        _one(files, rows[place], twins[place, files.seg.lower()], summary)
    if progress is not None:
        progress(len(work), len(work), "")
    for place in places:
        rows[place].join_trees()
    on_disk = {(place, files.seg) for place, files in work}
    summary.skipped += sum(rows[place].count_without_files(on_disk) for place in places)
    return summary


def _refuse_beside_a_server(root: Path) -> None:
    holder = holder_of(root) or own_server()
    if holder is not None:
        raise ServerRuns(
            f"A server is running on this workspace or from this HALO_HOME (process {holder.pid}). "
            "Stop it, then migrate; or leave it running: it converts each session when it is first opened."
        )


def _folders_by_session(work: Iterable[tuple[Path, SessionFiles]]) -> dict[tuple[Path, str], list[str]]:
    """The agent folders that hold files of each session, by its lower-case name: some disks fold the case."""
    found: dict[tuple[Path, str], list[str]] = defaultdict(list)
    for place, files in work:
        if files.has("legacy", "legacy_temporary", "ui"):
            found[place, files.seg.lower()].append(files.agent_id)
    return found


def _one(files: SessionFiles, rows: "_Rows", folders: list[str], summary: Summary) -> None:
    """Convert one session; whatever is wrong with it stops nothing else."""
    try:
        _refuse_links(files)
        if files.has("legacy"):
            rows.check_folder(files, folders)
        result = rows.convert(files)
    except HaloError as error:
        summary.failed.append((files.name, error.message))
    except OSError as error:
        summary.failed.append((files.name, system_reason(error, files.name)))
    else:
        if result is not None:
            summary.add(files.name, result)


def _refuse_links(files: SessionFiles) -> None:
    """A link or a pipe at the name of a 1.x file may stand for words; a folder is nobody's session."""
    for path in files.kinds[NOT_REGULAR]:
        if path.name.endswith((".json", ".json.gz")) and (path.is_symlink() or not path.is_dir()):
            raise LegacyUnreadable(f"{path.name} is no plain file; put the file itself there")


class _Rows:
    """The rows of one place by the leaf of their ids, and converting with a row at hand."""

    def __init__(self, place: Path, now: datetime, summary: Summary, *, dry_run: bool):
        self.place = place
        self.now = now
        self.dry_run = dry_run
        self.workspace: Workspace | None = None
        self._by_leaf: dict[str, list[tuple[str, str]]] = defaultdict(list)  # leaf → (agent, session id)
        to_come = self._not_imported(summary)
        if not dry_run:
            self._open()
        for agent_id, session_id in {*to_come, *self._stored()} if dry_run else self._stored():
            self._by_leaf[leaf(session_id)].append((agent_id, session_id))

    def _not_imported(self, summary: Summary) -> list[tuple[str, str]]:
        """The sessions of a 1.x database that was not taken in yet."""
        stored = Workspace.objects.filter(path=str(self.place), legacy_imported_at__isnull=False)
        if has_column(Workspace, "legacy_imported_at") and stored.exists():
            return []
        try:
            database = read_legacy_rows(self.place)
        except (LegacyUnreadable, OSError) as error:
            reason = system_reason(error, "halo.db") if isinstance(error, OSError) else error.message
            summary.failed.append(("halo.db", f"{reason}; the sessions get their rows from their files"))
            return []
        return [] if database is None else [(row.agent_id, row.id) for row in usable(database.sessions)]

    def _open(self) -> None:
        internal = self.place == settings.HALO_HOME.internal_sessions
        self.workspace = internal_workspace(self.now) if internal else open_workspace(str(self.place), self.now)

    def join_trees(self) -> None:
        """A row that was made before its parent's names it only now."""
        if self.dry_run:
            return
        rows = AgentSession.objects.filter(workspace=self.workspace)
        lost = rows.exclude(lost_parent_id=None)
        found = rows.filter(session_id__in=lost.values("lost_parent_id")).values("session_id")
        lost.filter(lost_parent_id__in=found).update(parent_session_id=F("lost_parent_id"), lost_parent_id=None)

    def _stored(self) -> Iterable[tuple[str, str]]:
        if not has_table(AgentSession):
            return []
        stored = AgentSession.objects.filter(workspace__path=str(self.place), deleting=False)
        return stored.values_list("agent_id", "session_id")

    def count_without_files(self, on_disk: set[tuple[Path, str]]) -> int:
        return sum(len(found) for seg, found in self._by_leaf.items() if (self.place, seg) not in on_disk)

    def check_folder(self, files: SessionFiles, folders: list[str]) -> None:
        """Raises LegacyUnreadable when the session belongs into another agent's folder, or nobody can tell."""
        agents = {agent_id for agent_id, _ in self._by_leaf[files.seg]}
        others = [agent_id for agent_id in folders if agent_id != files.agent_id]
        if files.agent_id in agents or (not agents and not others):
            return
        if others:
            raise LegacyUnreadable(f"the same session exists in another agent folder ({', '.join(others)})")
        raise LegacyUnreadable(
            f"its row names another agent ({', '.join(sorted(agents))}); move the file to its folder"
        )

    def convert(self, files: SessionFiles) -> Conversion | None:
        if not files.has("legacy") and not files.has("legacy_temporary"):
            return Conversion("skipped") if files.has("ui", "raw") or self._by_leaf[files.seg] else None
        if self.dry_run:
            return _rehearsed(files)
        return convert(
            files.as_listed,
            lambda header, turns: self._fill(files, header, turns),
            lambda losses: note_losses(self.place, files.name, losses, self.now),
        )

    def _fill(self, files: SessionFiles, header: LegacyHeader, turns: int) -> None:
        session_id = next((one for agent, one in self._by_leaf[files.seg] if agent == files.agent_id), None)
        assert self.workspace is not None
        stored = AgentSession.objects.filter(workspace=self.workspace, agent_id=files.agent_id)
        found = stored.filter(session_id=session_id or _full_id(files.seg, header)).first()
        if found is None:
            found = row_from_header(self.workspace, files, header, self.now)
        fill_row(found.pk, header, turns)


def _rehearsed(files: SessionFiles) -> Conversion:
    """What a conversion comes to: the real one, of a copy in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="halo-1x-") as folder:
        for path in files.as_listed.files():
            if path.is_file() and path != files.paths.migrating:
                shutil.copy2(path, folder)
        return convert(SessionPaths(Path(folder), files.seg), lambda header, turns: None)


def row_from_header(workspace: Workspace, files: SessionFiles, header: LegacyHeader, now: datetime) -> AgentSession:
    """A row for a 1.x session that has none, from what its file says. The file's name is its identity.

    Raises LegacyUnreadable when there is another such session.
    """
    session_id = _full_id(files.seg, header)
    try:
        with transaction.atomic():
            return _created(workspace, files, header, session_id, now)
    except IntegrityError:
        raise LegacyUnreadable(
            f"another session has the id {session_id}, or one whose files have the same names on some disks"
        ) from None


def _created(
    workspace: Workspace, files: SessionFiles, header: LegacyHeader, session_id: str, now: datetime
) -> AgentSession:
    above = column_text(header.parent_session_id or parent(session_id) or "")[:512] or None
    has_parent = above is not None and AgentSession.objects.filter(workspace=workspace, session_id=above).exists()
    values = header_values(header)
    return AgentSession.objects.create(
        workspace=workspace,
        session_id=session_id,
        parent_session_id=above if has_parent else None,
        lost_parent_id=None if has_parent else above,
        agent_id=files.agent_id,
        agent_name=column_text(header.agent_name or files.agent_id)[:200],
        leaf_key=files.seg.lower(),
        exchange_count=None,
        created_at=_time(header.created_at) or now,
        updated_at=_time(header.updated_at) or now,
        **values,
    )


def _full_id(seg: str, header: LegacyHeader) -> str:
    """The id in the header when it ends in the file's name (a sub-session's), else the name."""
    claimed = header.session_id or seg
    if leaf(claimed) != seg:
        return check_session_id(seg)
    return check_session_id(claimed)


def _time(text: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return moment if moment is None or moment.tzinfo is not None else moment.replace(tzinfo=UTC)
