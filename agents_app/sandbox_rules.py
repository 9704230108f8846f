"""The settings of the sandbox as paths: what `general.sandbox.*` adds to the built-in rules."""

import os
from collections.abc import Iterable
from pathlib import Path

from agents_app.config.general import General
from agents_app.tools.base import SandboxRules


def sandbox_rules(general: General) -> SandboxRules:
    sandbox = general.sandbox
    return SandboxRules(
        hidden=_paths((*sandbox.hidden_dirs, *sandbox.hidden_files)),
        writable=_paths(sandbox.writable_dirs),
        network=sandbox.network,
    )


def _paths(written: Iterable[str]) -> tuple[Path, ...]:
    """Absolute ones; `~` is the home of the user that runs Halo. What is neither was told of, and names nothing."""
    expanded = (Path(os.path.expanduser(each.strip())) for each in written if each.strip())
    return tuple(dict.fromkeys(path for path in expanded if path.is_absolute()))
