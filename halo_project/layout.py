"""Where things lie: the folders and files of `HALO_HOME`, and those of a workspace's `.halo`.

Only paths, their creation and their access rights; what the files hold belongs to the rooms that write them.
"""

import hashlib
import os
import secrets
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from halo_project.errors import BadRequest, ConfigurationError, NotFound
from halo_project.private_files import once, private_folder

# A socket address holds 108 bytes on Linux and 104 on macOS, the ending zero included.
MAX_SOCKET_PATH_BYTES = 100

_GITIGNORE = """\
# Made by Halo: conversations, logs and scratch files stay out of version control. Remove a line to have them in it.
/sessions/
/logs/
/evo/
/assets/
/tmp/
/halo.db*
/runtime.lock
"""


@dataclass(frozen=True, slots=True)
class HomeLayout:
    """`HALO_HOME`: what belongs to the installation and not to any workspace. `prepare()` makes the folders."""

    home: Path

    @property
    def database(self) -> Path:
        return self.home / "halo.sqlite3"

    @property
    def secrets(self) -> Path:
        return self.home / "secrets"

    @property
    def django_key_file(self) -> Path:
        return self.secrets / "django-key"

    @property
    def password_file(self) -> Path:
        return self.secrets / "password"

    @property
    def installation_id_file(self) -> Path:
        return self.secrets / "installation-id"

    @property
    def settings_yaml(self) -> Path:
        return self.secrets / "settings.yaml"

    @property
    def run_dir(self) -> Path:
        return self.home / "run"

    @property
    def server_lock(self) -> Path:
        return self.run_dir / "server.lock"

    @property
    def server_state(self) -> Path:
        """JSON about the running supervisor: its pid, its address and the pids of its children."""
        return self.run_dir / "server.json"

    @property
    def redis_socket(self) -> Path:
        path = self.run_dir / "r.sock"
        if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
            return path
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"halo-{os.getuid()}-{digest}" / "r.sock"

    @property
    def redis_data(self) -> Path:
        return self.home / "redis"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def default_workspace(self) -> Path:
        return self.home / "workspace"

    @property
    def global_dir(self) -> Path:
        return self.home / "global"

    @property
    def global_agents(self) -> Path:
        return self.global_dir / "agents"

    @property
    def global_models(self) -> Path:
        return self.global_dir / "models"

    @property
    def installed_models(self) -> Path:
        return self.global_dir / "models.d"

    @property
    def global_skills(self) -> Path:
        return self.global_dir / "skills"

    @property
    def global_prompts(self) -> Path:
        return self.global_dir / "prompts"

    @property
    def cron_logs(self) -> Path:
        """One file for each run of a scheduled job."""
        return self.global_dir / "logs" / "cron"

    @property
    def internal_sessions(self) -> Path:
        """The root of the pseudo-workspace that internal agents' sessions belong to."""
        return self.global_dir / "internal-sessions"

    def prepare(self) -> None:
        """Make every folder, private to this user. Raises ConfigurationError when the home cannot be written."""
        private = (self.secrets, self.run_dir, self.redis_data, self.logs, self.redis_socket.parent)
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in private:
                private_folder(folder)
            for folder in (self.global_dir, self.global_agents, self.global_models, self.internal_sessions):
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"HALO_HOME cannot be used: {error.filename or self.home}: {error.strerror}."
                " Give Halo a folder that it may write."
            ) from None

    def django_key(self) -> str:
        """The secret that signs cookies; made once."""
        return once(self.django_key_file, lambda: secrets.token_urlsafe(50))

    def installation_id(self) -> str:
        """Twelve hex digits that set this installation's Redis keys apart from another's; made once."""
        return once(self.installation_id_file, lambda: secrets.token_hex(6))


@dataclass(frozen=True, slots=True)
class WorkspaceLayout:
    """A workspace folder and its `.halo`. Making the object touches nothing."""

    root: Path

    @property
    def halo_dir(self) -> Path:
        return self.root / ".halo"

    @property
    def sessions(self) -> Path:
        return self.halo_dir / "sessions"

    def agent_sessions(self, agent_id: str) -> Path:
        """The folder of an agent's session files. The id must have passed `identifiers.check_agent_id`."""
        return self.sessions / agent_id

    @property
    def assets(self) -> Path:
        return self.halo_dir / "assets"

    @property
    def agents(self) -> Path:
        return self.halo_dir / "agents"

    @property
    def skills(self) -> Path:
        return self.halo_dir / "skills"

    @property
    def prompts(self) -> Path:
        return self.halo_dir / "prompts"

    @property
    def memory(self) -> Path:
        return self.halo_dir / "memory"

    @property
    def logs(self) -> Path:
        return self.halo_dir / "logs"

    @property
    def tmp(self) -> Path:
        return self.halo_dir / "tmp"

    @property
    def settings_yaml(self) -> Path:
        return self.halo_dir / "settings.yaml"

    @property
    def instructions(self) -> Path:
        return self.halo_dir / "INSTRUCTIONS.md"

    @property
    def user(self) -> Path:
        return self.halo_dir / "USER.md"

    @property
    def index(self) -> Path:
        return self.halo_dir / "INDEX.md"

    @property
    def runtime_lock(self) -> Path:
        """Names the server that runs this workspace's sessions."""
        return self.halo_dir / "runtime.lock"

    @property
    def migration_notes(self) -> Path:
        """What a conversion from 1.x could not bring over, one JSON object a line."""
        return self.logs / "migration-1x.jsonl"

    @property
    def legacy_database(self) -> Path:
        """The 1.x database; only ever read."""
        return self.halo_dir / "halo.db"

    def exists(self) -> bool:
        """Whether this folder has been used as a workspace."""
        return self.halo_dir.is_dir()

    def scaffold(self) -> None:
        """Make the folders that every workspace has. Nothing that exists is changed.

        A `.halo` that is new keeps what was said out of version control, where `git add .` would put it.
        """
        if not self.exists():
            self.halo_dir.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError), open(self.halo_dir / ".gitignore", "x", encoding="utf-8") as file:
                file.write(_GITIGNORE)
        for folder in (self.sessions, self.agents, self.skills, self.prompts, self.assets, self.tmp):
            folder.mkdir(parents=True, exist_ok=True)


def resolve_workspace(path: str) -> Path:
    """The real path of a workspace folder. Raises NotFound or BadRequest with a code that says what is wrong."""
    if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
        raise BadRequest("A workspace is named by its absolute path.", code="workspace_not_absolute")
    try:
        real = Path(path).resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"There is no folder {path}.", code="workspace_missing") from None
    except UnicodeEncodeError:
        raise BadRequest("This path holds a character that no file name can have.", code="workspace_missing") from None
    except (OSError, RuntimeError):  # RuntimeError: a loop of symbolic links
        raise NotFound(f"The folder {path} cannot be reached.", code="workspace_missing") from None
    if not real.is_dir():
        raise BadRequest(f"{path} is not a folder.", code="workspace_not_directory")
    if real == Path(real.anchor):
        raise BadRequest("The root of the file system cannot be a workspace.", code="workspace_root")
    return real


def refuse_home(root: Path, home: HomeLayout) -> None:
    """Raises BadRequest for the installation's own folder, and for one whose `.halo` it would be."""
    own = home.home.resolve()
    if own in (root, WorkspaceLayout(root).halo_dir.resolve()):
        raise BadRequest(
            f"{root} cannot be a workspace: Halo keeps the installation's own files in {own}. Choose a folder inside"
            " or beside it.",
            code="workspace_is_home",
        )
