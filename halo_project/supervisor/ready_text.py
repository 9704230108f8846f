"""The block that `halo serve` prints when it is ready. Pure."""

from pathlib import Path

from halo_project import VERSION
from halo_project.env import HaloEnv
from halo_project.layout import HomeLayout

_ANY_ADDRESS = ("0.0.0.0", "::")
_NO_KEY = (
    "none has a key: the rehearsal agent answers, which calls no model",
    "(set ANTHROPIC_API_KEY or OPENAI_API_KEY, and start again)",
)


def ready_text(
    env: HaloEnv,
    workspace: Path,
    new_password: str | None,
    providers: list[str] | None,
    problem: str | None = None,
) -> str:
    """`new_password` only when it was made just now; `providers` None when they could not be found out, and `problem`
    then why, where that is known."""
    rows = [
        ("address", address(env)),
        *_password(env, new_password),
        ("workspace", str(workspace)),
        *_models(env, providers, problem),
        ("stop", "Ctrl-C"),
    ]
    lines = [f"Halo {VERSION} is ready.", "", *(f"  {name:<10}{text}".rstrip() for name, text in rows)]
    return "\n" + "\n".join(lines) + "\n\n"


def address(env: HaloEnv) -> str:
    """Where a browser on this machine finds it."""
    host = "localhost" if env.host in _ANY_ADDRESS else env.host
    return f"http://{f'[{host}]' if ':' in host else host}:{env.port}"


def _password(env: HaloEnv, new_password: str | None) -> list[tuple[str, str]]:
    if env.password is not None:
        return [("password", "the one in HALO_PASSWORD")]
    if new_password is not None:
        return [
            ("password", new_password),
            ("", "(made just now, shown only this once; `.venv/bin/halo password` sets another)"),
        ]
    return [
        ("password", f"its hash is in {HomeLayout(env.home).password_file}; `.venv/bin/halo password` sets a new one")
    ]


def _models(env: HaloEnv, providers: list[str] | None, problem: str | None) -> list[tuple[str, str]]:
    if problem is not None:
        return [("models", "could not be found out, and nobody is answered until this is mended:"), ("", problem)]
    if providers is None:
        return [("models", f"could not be found out; see {HomeLayout(env.home).logs / 'web.log'}")]
    if not providers:
        return [("models", _NO_KEY[0]), ("", _NO_KEY[1])]
    return [("models", ", ".join(providers))]
