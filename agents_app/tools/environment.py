"""The environment a command runs in, with nothing that waits for someone.

At full access it is the person's own without Halo's secrets. In a sandbox it is made of the few variables named here:
keys come under too many names to list them.

A command has no terminal and no input. What would open a pager, an editor or a password prompt gets a stand-in that
answers at once, so that it goes on or fails in seconds.
"""

from collections.abc import Mapping

_SECRET_PREFIXES = ("HALO_", "DJANGO_", "CELERY_", "ANTHROPIC_", "OPENAI_", "REDIS_", "VALKEY_")
_SECRET_SUFFIXES = ("_API_KEY", "_SECRET_KEY_BASE")
_SECRETS = frozenset({"DATABASE_URL", "SECRET_KEY", "AWS_BEARER_TOKEN_BEDROCK"})

_OF_OUR_START = frozenset({"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "OLDPWD"})

# `true` as an editor leaves a text as it is: `git rebase --continue` goes on, `git commit` stops at an empty message.
UNATTENDED = {
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
    kept = {name: value for name, value in inherited.items() if not is_secret(name) and not _is_of_our_start(name)}
    return {**kept, **UNATTENDED}


def _is_of_our_start(name: str) -> bool:
    """What `make serve` and our processes leave in the environment: a command's own `make` must not take it over."""
    return name in _OF_OUR_START or name.startswith(("_MP_FORK_", "MAKE_TERM"))


# What a program needs to find its way, its language, its proxy and the certificates it may trust.
_SANDBOX_NAMES = frozenset({"USER", "LOGNAME", "LANG", "LANGUAGE", "TZ"})
_SANDBOX_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY"})
_SANDBOX_CERTIFICATES = frozenset({
    "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS",
})  # fmt: skip


def sandbox_environment(inherited: Mapping[str, str], home: str) -> dict[str, str]:
    """A new environment for a command in a sandbox. home: the person's; its `.local/bin` comes first in PATH.

    A proxy whose address holds a password is left out. Caches go to the command's own /tmp: the home is read-only.
    """
    kept = {name: value for name, value in inherited.items() if _is_for_sandboxes(name, value)}
    path = inherited.get("PATH") or "/usr/local/bin:/usr/bin:/bin"
    own = {"HOME": home, "PATH": f"{home}/.local/bin:{path}", "XDG_CACHE_HOME": "/tmp/.cache"}
    return {**kept, **own, **UNATTENDED}


def _is_for_sandboxes(name: str, value: str) -> bool:
    if name.upper() in _SANDBOX_PROXIES:
        return "@" not in value
    return name in _SANDBOX_NAMES or name in _SANDBOX_CERTIFICATES or name.startswith("LC_")


def is_secret(name: str) -> bool:
    """True for variables that configure Halo or hold a model vendor's key; the agent has no business with them."""
    return configures_halo(name) or name.upper().endswith(_SECRET_SUFFIXES)


def configures_halo(name: str) -> bool:
    """True for variables of Halo's own, whatever skills and providers there are."""
    return name.upper().startswith(_SECRET_PREFIXES) or name.upper() in _SECRETS
