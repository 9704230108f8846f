"""The environment a command runs in: the person's own, without Halo's secrets, and with nothing that waits for someone.

A command has no terminal and no input. What would open a pager, an editor or a password prompt gets a stand-in that
answers at once, so that it goes on or fails in seconds.
"""

from collections.abc import Mapping

_SECRET_PREFIXES = ("HALO_", "DJANGO_", "CELERY_", "ANTHROPIC_", "OPENAI_", "REDIS_", "VALKEY_")
_SECRET_SUFFIXES = ("_API_KEY", "_SECRET_KEY_BASE")
_SECRETS = frozenset({"DATABASE_URL", "SECRET_KEY", "AWS_BEARER_TOKEN_BEDROCK"})

# `true` as an editor leaves a text as it is: `git rebase --continue` goes on, `git commit` stops at an empty message.
_UNATTENDED = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
}


def command_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """A new environment made from the inherited one."""
    kept = {name: value for name, value in inherited.items() if not is_secret(name)}
    return {**kept, **_UNATTENDED}


def is_secret(name: str) -> bool:
    """True for variables that configure Halo or hold a model vendor's key; the agent has no business with them."""
    upper = name.upper()
    return upper.startswith(_SECRET_PREFIXES) or upper.endswith(_SECRET_SUFFIXES) or upper in _SECRETS
