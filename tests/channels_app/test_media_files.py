"""Which files go with a message, and which do not."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from channels_app.delivery_kinds import Message
from channels_app.media_files import MAX_FILES, MediaFile, load
from halo_project.clock import utcnow
from halo_project.layout import HomeLayout
from sessions_app.models import Workspace
from tests.agents_app.config.support import write_yaml

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("home")]
LEVELS = ("full", "workspace", "readonly")
EACH, TOGETHER = 100, 150


@pytest.fixture
def read(workspace: Path) -> Callable[..., object]:
    async def read_(*paths: Path | str, access: str = "full") -> list[MediaFile]:
        media = tuple(map(str, paths))
        message = Message("k", "a", None, "", media, str(workspace), access, {}, utcnow())
        return await load(message, EACH, TOGETHER)

    return read_


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A system's temporary folder in which the workspace does not lie."""
    folder = tmp_path / "systemtmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def outside() -> Iterator[Path]:
    """A file that no level may send: neither in the workspace nor in the temporary folder."""
    folder = Path(tempfile.mkdtemp(dir=Path(__file__).parent)).resolve()
    path = folder / "secret.txt"
    path.write_text("secret")
    yield path
    path.unlink()
    folder.rmdir()


@pytest.mark.parametrize("access", LEVELS)
async def test_a_file_of_the_workspace(read, workspace: Path, access: str) -> None:
    (workspace / "out put.PNG").write_bytes(b"\x89PNG")
    (found,) = await read(workspace / "out put.PNG", access=access)
    assert (found.data, found.problem, found.name, found.mime_type) == (b"\x89PNG", None, "out put.PNG", "image/png")


@pytest.mark.parametrize("access", LEVELS)
async def test_a_link_inside_is_followed_and_one_that_leads_out_is_not(
    read, workspace: Path, outside: Path, temporary: Path, access: str
) -> None:
    (workspace / "real").write_bytes(b"in")
    (workspace / "inner").symlink_to(workspace / "real")
    (workspace / "outer").symlink_to(outside)
    (workspace / "folder").symlink_to(outside.parent)
    (workspace / "loop").symlink_to(workspace / "loop")
    inner, outer, folder, loop = await read(
        workspace / "inner", workspace / "outer", workspace / "folder" / outside.name, workspace / "loop", access=access
    )
    assert inner.data == b"in" and inner.problem is None
    for each in (outer, folder, loop):
        assert each.data == b"" and each.problem.startswith("Not sent: "), each


async def test_the_temporary_folder_at_full_access_only(read, temporary: Path) -> None:
    (temporary / "chart.pdf").write_bytes(b"%PDF")
    assert [file.data for file in await read(temporary / "chart.pdf")] == [b"%PDF"]
    for access in ("workspace", "readonly", "unheard-of"):
        (found,) = await read(temporary / "chart.pdf", access=access)
        assert found.data == b"" and "only files that the session sees" in found.problem


async def test_a_neighbour_with_the_same_beginning_is_outside(read, workspace: Path, temporary: Path) -> None:
    sibling = workspace.with_name(workspace.name + "-other")
    sibling.mkdir()
    (sibling / "a").write_text("a")
    found = await read(sibling / "a", f"{workspace}/../{sibling.name}/a", "a", "~/a", "", workspace / "a\0b")
    assert [file.data for file in found] == [b""] * 6
    assert all(file.problem.startswith("Not sent: ") for file in found)


async def test_what_is_no_plain_file(read, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    found = await read(workspace / "pipe", workspace, workspace / "missing", workspace / ("x" * 300))
    assert ["pipe or socket" in found[0].problem, "a folder" in found[1].problem] == [True, True]
    assert found[2].problem == "Not sent: there is no such file." and found[3].problem


async def test_sizes(read, workspace: Path) -> None:
    for name, size in (("fits", EACH), ("large", EACH + 1), ("half", 50), ("drop", 1), ("none", 0)):
        (workspace / name).write_bytes(b"x" * size)
    found = await read(*(workspace / name for name in ("large", "fits", "half", "drop", "none")))
    assert [len(file.data) for file in found] == [0, EACH, 50, 0, 0]
    assert "larger than" in found[0].problem and "together" in found[3].problem and found[4].problem is None


async def test_more_files_than_go_with_a_message(read, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"a")
    found = await read(*[workspace / "a"] * (MAX_FILES + 3))
    assert len(found) == MAX_FILES + 1
    assert found[-2].problem is None and "2 after it were not sent" in found[-1].problem


async def test_below_full_access_nothing_goes_that_the_session_does_not_see(
    read, workspace: Path, home: HomeLayout, tmp_path: Path
) -> None:
    talk = workspace / ".halo" / "sessions" / "other.ui.jsonl"
    talk.write_text("what others said")
    hidden = workspace / "keys" / "k.pem"
    hidden.parent.mkdir()
    hidden.write_text("key")
    os.link(talk, workspace / "second-name")
    write_yaml(home.settings_yaml, {"general": {"sandbox": {"hidden_dirs": [str(hidden.parent)]}}})
    wanted = (talk, hidden, workspace / "second-name")
    for access in ("workspace", "readonly"):
        assert [(file.data, bool(file.problem)) for file in await read(*wanted, access=access)] == [(b"", True)] * 3
    assert all(file.data for file in await read(*wanted))


async def test_the_state_of_a_workspace_inside_this_one(read, workspace: Path) -> None:
    inner = workspace / "inner"
    state = inner / ".halo" / "sessions"
    state.mkdir(parents=True)
    (state / "a.ui.jsonl").write_text("talk")
    await Workspace.objects.acreate(path=str(inner), created_at=utcnow())
    (found,) = await read(state / "a.ui.jsonl", access="workspace")
    assert found.data == b"" and found.problem
