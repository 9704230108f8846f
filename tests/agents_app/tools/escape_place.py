"""A small installation with a needle in everything that a lower access level must not see."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agents_app.tools.base import AccessLevel, SandboxRules, ToolContext, ToolLimits, ToolResult
from agents_app.tools.registry import TOOL_NAMES, tools_for

NEEDLE = "n33dle"
LEVELS: tuple[AccessLevel, ...] = ("workspace", "readonly")
# Every one of them holds the needle; relative to the base folder.
SECRETS = (
    "home/.halo/secrets/settings.yaml",
    "home/.halo/secrets/django-key",
    "home/.halo/halo.sqlite3",
    "home/.halo/halo.sqlite3-wal",
    "home/.halo/logs/server.log",
    "home/.halo/run/server.json",
    "home/.halo/redis/dump.rdb",
    "home/.halo/not-thought-of",
    "home/.halo/global/internal-sessions/x.jsonl",
    "home/.halo/global/logs/cron/c.log",
    "home/.halo/global/evo.db",
    "home/.ssh/id_ed25519",
    "home/.aws/credentials",
    "home/.config/gh/hosts.yml",
    "home/.config/git/credentials",
    "home/.kube/config",
    "home/.netrc",
    "home/.git-credentials",
    "home/.gitconfig",
    "home/.bash_history",
    "home/.claude/session.jsonl",
    "home/.mozilla/firefox/p/key4.db",
    "work/.halo/sessions/agent/s.raw.jsonl",
    "work/.halo/logs/server.log",
    "work/.halo/evo/runs/r.json",
    "work/.halo/halo.db",
    "work/.halo/halo.db-wal",
    "other/notes.txt",
    "other/.halo/sessions/agent/t.raw.jsonl",
    "hidden-folder/inside.txt",
    "hidden-file.txt",
)


@dataclass
class Place:
    """base/{work,home,other,…}; `tool("grep", pattern="x")` runs a tool in `work` at the level of the context."""

    base: Path
    context: ToolContext

    @property
    def workspace(self) -> Path:
        return self.context.workspace

    async def tool(self, name: str, **args: Any) -> ToolResult:
        tool = tools_for(TOOL_NAMES, self.context.limits)[name]
        return await tool.run(args, self.context)

    async def shell(self, command: str) -> str:
        """What a command prints. Its last status is taken away: a failure would repeat the command line."""
        return (await self.tool("shell_exec", command=f"{command}\ntrue")).text

    def having(self, **changes: Any) -> "Place":
        return Place(self.base, replace(self.context, **changes))

    def tree(self) -> dict[str, tuple[Any, ...]]:
        """Every file with its content, mode and link target, to see whether anything changed."""
        return {str(path.relative_to(self.base)): _facts(path) for path in sorted(self.base.rglob("*"))}


def _facts(path: Path) -> tuple[Any, ...]:
    status = path.lstat()
    content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    return status.st_mode, status.st_uid, content, path.readlink() if path.is_symlink() else None


def make_place(base: Path, access: AccessLevel, *, sandboxed: bool) -> Place:
    for name in SECRETS:
        file = base / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{NEEDLE} of {name}\n")
    (base / "work/own.txt").write_text("mine\n")
    (base / "work/.halo/INDEX.md").write_text("index\n")
    (base / "home/.halo/global/INSTRUCTIONS.md").write_text("shared\n")
    (base / "home/notes.txt").write_text("plain\n")
    (base / "outside.txt").write_text("outside\n")
    context = ToolContext(
        base / "work",
        base / "home",
        ToolLimits(shell_timeout_s=30),
        access=access,
        halo_home=base / "home/.halo",
        sandboxed=sandboxed,
        rules=SandboxRules(hidden=(base / "hidden-folder", base / "hidden-file.txt")),
        other_workspaces=(base / "other", base / "gone"),
    )
    return Place(base, context)
