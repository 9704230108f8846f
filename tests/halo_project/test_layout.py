"""Where things lie, that secrets are private, and which folder can be a workspace."""

import os
import socket
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from halo_project.errors import BadRequest, ConfigurationError, NotFound
from halo_project.layout import MAX_SOCKET_PATH_BYTES, HomeLayout, WorkspaceLayout, refuse_home, resolve_workspace


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_prepare_makes_the_folders_and_keeps_them_private(tmp_path):
    home = HomeLayout(tmp_path / "deep" / "home")
    home.prepare()
    home.prepare()
    for folder in (home.secrets, home.run_dir, home.logs, home.redis_data, home.home):
        assert mode(folder) == 0o700
    assert home.global_agents.is_dir() and home.internal_sessions.is_dir()


def test_prepare_tightens_a_secrets_folder_that_others_could_read_but_not_the_home_itself(tmp_path):
    home = HomeLayout(tmp_path)
    tmp_path.chmod(0o755)
    home.secrets.mkdir(mode=0o755)
    home.prepare()
    assert (mode(home.secrets), mode(tmp_path)) == (0o700, 0o755)


def test_a_home_that_cannot_be_written_is_one_line(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for home in (file, file / "below"):
        with pytest.raises(ConfigurationError, match="HALO_HOME cannot be used"):
            HomeLayout(home).prepare()


def test_key_and_installation_id_are_made_once_also_when_processes_race(tmp_path):
    home = HomeLayout(tmp_path)
    home.prepare()
    with ThreadPoolExecutor(16) as threads:
        keys = set(threads.map(lambda _: home.django_key(), range(64)))
        ids = set(threads.map(lambda _: home.installation_id(), range(64)))
    assert len(keys) == len(ids) == 1
    assert len(keys.pop()) >= 50
    assert mode(home.django_key_file) == mode(home.installation_id_file) == 0o600
    assert sorted(path.name for path in home.secrets.iterdir()) == ["django-key", "installation-id"]


def test_an_empty_key_file_is_filled(tmp_path):
    home = HomeLayout(tmp_path)
    home.prepare()
    home.django_key_file.write_text("")
    assert home.django_key() == home.django_key() != ""


@pytest.mark.parametrize("length", [1, 60, 79, 80, 81, 90, 200])
def test_the_socket_path_fits_into_an_address_however_long_the_home(tmp_path_factory, length):
    short = Path("/tmp")
    home = HomeLayout(short / ("h" * length))
    path = home.redis_socket
    assert len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES
    assert path == HomeLayout(short / ("h" * length)).redis_socket
    if len(os.fsencode(home.run_dir / "r.sock")) > MAX_SOCKET_PATH_BYTES:
        assert str(home.home) not in str(path)
        assert path != HomeLayout(short / ("i" * length)).redis_socket


def test_a_socket_can_really_be_bound_at_the_end_of_a_long_home(tmp_path):
    home = HomeLayout(tmp_path / ("x" * 120))
    home.prepare()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home.redis_socket))
    home.redis_socket.unlink()
    assert mode(home.redis_socket.parent) == 0o700
    home.redis_socket.parent.rmdir()


def test_scaffold_makes_what_is_missing_and_changes_nothing(tmp_path):
    layout = WorkspaceLayout(tmp_path)
    assert not layout.exists()
    layout.agents.mkdir(parents=True)
    (layout.agents / "mine").write_text("x")
    layout.scaffold()
    assert layout.exists() and layout.sessions.is_dir() and (layout.agents / "mine").read_text() == "x"
    assert layout.agent_sessions("default") == tmp_path / ".halo" / "sessions" / "default"
    assert not (layout.halo_dir / ".gitignore").exists(), "it was there before, with or without one"


def test_what_is_said_in_a_new_workspace_is_not_added_to_version_control(tmp_path):
    layout = WorkspaceLayout(tmp_path)
    layout.scaffold()
    said = layout.agent_sessions("default") / "s.ui.jsonl"
    said.parent.mkdir()
    said.write_text("{}\n")
    (layout.agents / "mine").write_text("name: Mine\n")
    git = ["git", "-c", "core.excludesFile=", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True, timeout=60)
    subprocess.run([*git, "add", "-A"], check=True, timeout=60)
    added = subprocess.run([*git, "ls-files"], check=True, timeout=60, capture_output=True, text=True).stdout
    assert added.split() == [".halo/.gitignore", ".halo/agents/mine"]
    (layout.halo_dir / ".gitignore").write_text("")
    layout.scaffold()
    assert (layout.halo_dir / ".gitignore").read_text() == ""


def test_resolve_workspace_gives_the_real_path(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    assert resolve_workspace(str(tmp_path / "link")) == folder.resolve()
    assert resolve_workspace(f"{folder}/../folder/") == folder.resolve()


def test_resolve_workspace_says_what_is_wrong(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "to-root").symlink_to("/")
    cases = [
        (NotFound, "workspace_missing", f"{tmp_path}/absent"),
        (NotFound, "workspace_missing", f"{tmp_path}/file/below"),
        (NotFound, "workspace_missing", f"{tmp_path}/loop"),
        (BadRequest, "workspace_not_directory", f"{tmp_path}/file"),
        (BadRequest, "workspace_root", "/"),
        (BadRequest, "workspace_root", f"{tmp_path}/to-root"),
        (BadRequest, "workspace_not_absolute", "relative"),
        (BadRequest, "workspace_not_absolute", "~"),
        (BadRequest, "workspace_not_absolute", ""),
        (BadRequest, "workspace_not_absolute", f"{tmp_path}\0"),
    ]
    for kind, code, path in cases:
        with pytest.raises(kind) as refusal:
            resolve_workspace(path)
        assert refusal.value.code == code, path


def test_the_installations_own_folder_is_no_workspace_and_neither_is_the_one_around_it(tmp_path):
    root = tmp_path / "person"
    home = HomeLayout(root / ".halo")
    home.prepare()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".halo").symlink_to(home.home)
    for folder in (root, home.home, tmp_path / "linked"):
        with pytest.raises(BadRequest, match="the installation's own files") as raised:
            refuse_home(folder, home)
        assert raised.value.code == "workspace_is_home"
    home.default_workspace.mkdir()
    for folder in (home.default_workspace, root / "project", tmp_path):
        refuse_home(folder, home)


def test_a_home_behind_a_link_is_known(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(BadRequest):
        refuse_home(tmp_path / "real", HomeLayout(tmp_path / "link"))
