"""The words after `/` that are Halo's own, and the verbs of theirs that Halo itself answers.

A skill may answer further verbs of its namesake (`/agent create` is the skill `agent`'s), and never takes one of these
away. What each does is left to the doors (`channels_app/commands`).
"""

from agents_app.tools.base import AccessLevel

LEVELS: tuple[AccessLevel, ...] = ("readonly", "workspace", "full")  # each may do what those before it may

# By command: verb -> the access level it needs. A command without verbs takes free text.
BUILTIN_COMMANDS: dict[str, dict[str, AccessLevel]] = {
    "help": {},
    "session": {
        "new": "readonly",
        "list": "readonly",
        "info": "readonly",
        "switch": "readonly",
        "stop": "readonly",
        "interrupt": "readonly",
        "compact": "readonly",
        "context": "readonly",
    },
    "agent": {"list": "readonly", "switch": "readonly", "desc": "readonly", "delete": "full"},
    "skill": {
        "list": "readonly",
        "desc": "readonly",
        "disable": "workspace",
        "enable": "workspace",
        "delete": "full",
    },
    "workspace": {"info": "readonly", "switch": "full"},
}


def reaches(level: str, needed: str) -> bool:
    """Whether a session at `level` may do what needs `needed`. A level that is not known reaches nothing."""
    return level in LEVELS and needed in LEVELS and LEVELS.index(level) >= LEVELS.index(needed)
