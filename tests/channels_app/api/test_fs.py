"""Routes fs/*: what the workspace picker sees, and what makes a folder a workspace."""

import os
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.test import Client

from channels_app.api import folders
from halo_project.layout import HomeLayout
from sessions_app.models import Workspace


def browse(client: Client, path: object):
    return client.get("/api/fs/browse", {"path": str(path)})


def names(answer) -> list[str]:
    return [entry["name"] for entry in answer.json()["entries"]]


def resolve(client: Client, path: object):
    return client.post("/api/fs/workspace/resolve", {"path": str(path)}, content_type="application/json")


@pytest.fixture
def person_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of the server's user, for `~`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_home(client: Client, person_home: Path) -> None:
    expected = {"home": str(person_home), "workspace": str(django_settings.HALO.workspace)}
    assert client.get("/api/fs/home").json() == expected


class TestExists:
    def ask(self, client: Client, path: object) -> dict:
        return client.get("/api/fs/exists", {"path": str(path)}).json()

    def test_what_is_there(self, client: Client, tmp_path: Path, person_home: Path) -> None:
        (tmp_path / "file").touch()
        (tmp_path / "link").symlink_to(tmp_path)
        (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
        assert self.ask(client, tmp_path) == {"exists": True, "isDirectory": True}
        assert self.ask(client, tmp_path / "link") == {"exists": True, "isDirectory": True}
        assert self.ask(client, tmp_path / "file") == {"exists": True, "isDirectory": False}
        assert self.ask(client, "~/file") == {"exists": True, "isDirectory": False}
        for path in ("broken", "missing", "file/below", "x" * 300):
            assert self.ask(client, tmp_path / path) == {"exists": False}

    @pytest.mark.parametrize("path", ["relative", "", "./x", "..", "\0", "/a\0b"])
    def test_what_is_no_path(self, client: Client, path: str) -> None:
        answer = client.get("/api/fs/exists", {"path": path})
        assert answer.status_code == 400
        assert set(answer.json()) == {"error", "code"}


class TestBrowse:
    def test_one_level_folders_first(self, client: Client, tmp_path: Path) -> None:
        for name in ("zoo", "Alpha", ".git", "alpha2"):
            (tmp_path / name).mkdir()
        (tmp_path / "zoo" / "deeper").mkdir()
        for name in ("b.txt", "A.txt", ".env"):
            (tmp_path / name).touch()
        answer = browse(client, tmp_path)
        assert names(answer) == [".git", "Alpha", "alpha2", "zoo", ".env", "A.txt", "b.txt"]
        body = answer.json()
        assert (body["path"], body["parent"], body["truncated"]) == (str(tmp_path), str(tmp_path.parent), False)
        assert body["entries"][0] == {
            "name": ".git",
            "path": str(tmp_path / ".git"),
            "type": "directory",
            "hidden": True,
        }
        assert body["entries"][-1]["hidden"] is False

    def test_links_are_what_they_lead_to(self, client: Client, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "file").touch()
        (tmp_path / "to-real").symlink_to("real")
        (tmp_path / "to-file").symlink_to("file")
        (tmp_path / "broken").symlink_to("nowhere")
        (tmp_path / "circle").symlink_to("circle")
        kinds = {entry["name"]: entry["type"] for entry in browse(client, tmp_path).json()["entries"]}
        assert kinds == {
            "real": "directory", "to-real": "directory", "file": "file", "to-file": "file",
            "broken": "other", "circle": "other",
        }  # fmt: skip
        inside = browse(client, tmp_path / "to-real").json()
        assert (inside["path"], inside["parent"]) == (str(tmp_path / "to-real"), str(tmp_path))

    def test_paths_are_tidied(self, client: Client, tmp_path: Path, person_home: Path) -> None:
        (tmp_path / "a").mkdir()
        for path in ("~/a/..", f"{tmp_path}/", f"{tmp_path}/./a/..", f"/{tmp_path}", "~"):
            assert browse(client, path).json()["path"] == str(tmp_path)
        assert client.get("/api/fs/browse").json()["path"] == str(tmp_path)

    def test_the_root_has_no_parent(self, client: Client) -> None:
        body = browse(client, "/").json()
        assert (body["path"], body["parent"]) == ("/", None)

    def test_names_that_are_no_utf8_are_shown_and_cannot_be_chosen(self, client: Client, tmp_path: Path) -> None:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")).mkdir()
        (tmp_path / "日本 語").mkdir()
        entries = {entry["name"]: entry["path"] for entry in browse(client, tmp_path).json()["entries"]}
        assert entries == {"caf\ufffd": None, "日本 語": str(tmp_path / "日本 語")}

    def test_a_big_folder_is_cut_and_says_so(self, client: Client, tmp_path: Path) -> None:
        for number in range(folders.MAX_ENTRIES + 1):
            (tmp_path / f"{number:05}").touch()
        (tmp_path / "zzz").mkdir()
        body = browse(client, tmp_path).json()
        assert (len(body["entries"]), body["truncated"]) == (folders.MAX_ENTRIES, True)
        assert body["entries"][0]["name"] == "zzz"  # folders are what a picker is for

    @pytest.mark.parametrize(
        ("path", "status", "code"),
        [
            ("{}/missing", 404, "folder_missing"),
            ("{}/file", 400, "not_a_folder"),
            ("{}/file/below", 400, "not_a_folder"),
            ("{}/circle", 400, "folder_unreadable"),
            ("relative", 400, "path_not_absolute"),
            ("~nobody-of-this-name/x", 400, "bad_path"),
        ],
    )
    def test_refusals(self, client: Client, tmp_path: Path, path: str, status: int, code: str) -> None:
        (tmp_path / "file").touch()
        (tmp_path / "circle").symlink_to("circle")
        answer = browse(client, path.format(tmp_path))
        assert (answer.status_code, answer.json()["code"]) == (status, code)

    def test_a_folder_that_may_not_be_read(self) -> None:
        """The error itself: whoever runs the tests as root may read every folder."""
        refused = folders._explained(PermissionError(13, "Permission denied"))
        assert (refused.status, refused.code) == (403, "folder_forbidden")
        assert refused.message == "The server may not read this folder. Choose another one."


class TestResolve:
    def test_a_folder_becomes_a_workspace(self, client: Client, tmp_path: Path) -> None:
        root = (tmp_path / "My Project").resolve()
        root.mkdir()
        (tmp_path / "link").symlink_to(root)
        for path in (root, tmp_path / "link", f"{root}/", f"{root}/../My Project"):
            answer = resolve(client, path)
            assert answer.status_code == 200, answer.content
            assert answer.json() == {"id": str(root), "path": str(root), "name": "My Project"}
        assert (root / ".halo" / "sessions").is_dir()

    def test_what_is_there_stays(self, client: Client, workspace: Path) -> None:
        kept = workspace / ".halo" / "USER.md"
        kept.write_text("me")
        assert resolve(client, workspace).status_code == 200
        assert kept.read_text() == "me"

    def test_the_folder_around_the_installations_own_is_refused(
        self, client: Client, person_home: Path, settings
    ) -> None:
        settings.HALO_HOME = HomeLayout(person_home / ".halo")
        settings.HALO_HOME.prepare()
        for path in ("~", "~/.halo"):
            answer = resolve(client, path)
            assert (answer.status_code, answer.json()["code"]) == (400, "workspace_is_home")
        assert not (person_home / ".halo" / "sessions").exists()
        settings.HALO_HOME.default_workspace.mkdir()
        assert resolve(client, "~/.halo/workspace").status_code == 200

    def test_home_is_expanded(self, client: Client, person_home: Path) -> None:
        (person_home / "w").mkdir()
        assert resolve(client, "~/w").json()["path"] == str((person_home / "w").resolve())

    @pytest.mark.parametrize(
        ("path", "status", "code"),
        [
            ("{}/missing", 404, "workspace_missing"),
            ("{}/file", 400, "workspace_not_directory"),
            ("{}/file/below", 404, "workspace_missing"),
            ("/", 400, "workspace_root"),
            ("/tmp/..", 400, "workspace_root"),
            ("//", 400, "workspace_root"),
            ("{}/to-root", 400, "workspace_root"),
            ("relative", 400, "path_not_absolute"),
            ("", 400, "invalid"),
        ],
    )
    def test_refusals_leave_nothing_behind(
        self, client: Client, tmp_path: Path, path: str, status: int, code: str
    ) -> None:
        (tmp_path / "file").touch()
        (tmp_path / "to-root").symlink_to("/")
        answer = resolve(client, path.format(tmp_path))
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert not Path("/.halo").exists()
        assert not (tmp_path / "missing").exists()
        assert not Workspace.objects.exists()

    def test_a_name_that_no_row_can_hold(self, client: Client, tmp_path: Path) -> None:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")).mkdir()
        (tmp_path / "link").symlink_to(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
        answer = resolve(client, tmp_path / "link")
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_path")
        body = '{"path": "/tmp/\\udce9"}'
        answer = client.post("/api/fs/workspace/resolve", body, content_type="application/json")
        assert answer.status_code == 400

    def test_a_folder_that_cannot_be_written(self, client: Client, tmp_path: Path) -> None:
        (tmp_path / ".halo").touch()  # a file where the folder should be: refused also to root
        answer = resolve(client, tmp_path)
        assert (answer.status_code, answer.json()["code"]) == (403, "folder_not_writable")
