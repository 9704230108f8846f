"""The files that come with Halo and are laid into a home: which there are, and a digest that moves when one does."""

import hashlib
from functools import lru_cache
from pathlib import Path

from agents_app.config.files import BUNDLED, FileCache, is_folder
from agents_app.config.model_block import cut

KINDS = ("agents", "skills", "prompts")
SEED = "seed"


def bundle_files(root: Path = BUNDLED) -> dict[str, bytes]:
    """Content by path below `root`, as `agents/default/AGENT.md`, of everything that stays the platform's own."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for kind in KINDS
        for path in sorted((root / kind).rglob("*"))
        if path.is_file() and not _passed_over(path.relative_to(root))
    }


def seed_files(root: Path = BUNDLED) -> dict[str, bytes]:
    """Content by name of what is laid into a home once and is the person's own from then on."""
    folder = root / SEED
    found = sorted(folder.iterdir()) if is_folder(folder) else []
    return {path.name: path.read_bytes() for path in found if path.is_file() and not path.name.startswith(".")}


def digest_of(*trees: dict[str, bytes]) -> str:
    total = hashlib.sha256()
    for tree in trees:
        for name, data in tree.items():
            total.update(f"{name}\0{len(data)}\0".encode())
            total.update(data)
    return total.hexdigest()


def unit_of(relative: str) -> str:
    """The folder that counts as a whole: `agents/<id>`, `skills/<id>`, `prompts/<scope>`."""
    return "/".join(relative.split("/")[:2])


def fingerprint(relative: str, data: bytes) -> str:
    """The same for two files that say the same; an agent's model block, which is the person's, is not looked at."""
    return hashlib.sha256(
        cut(_text(data)).rest.encode(errors="surrogateescape") if is_agent_yaml(relative) else data
    ).hexdigest()


def model_fingerprint(data: bytes) -> str:
    return hashlib.sha256(cut(_text(data)).block.strip().encode(errors="surrogateescape")).hexdigest()


def is_agent_yaml(relative: str) -> bool:
    return relative.startswith("agents/") and relative.endswith("/agent.yaml") and relative.count("/") == 2


@lru_cache(maxsize=4)
def built_in_agents(root: Path = BUNDLED) -> frozenset[str]:
    """The ids of the agents that come with Halo."""
    return frozenset(path.parent.name for path in (root / "agents").glob("*/agent.yaml"))


def is_as_bundled(agent_id: str, folder: Path) -> bool:
    """Whether this copy of a built-in agent says what the bundled one does, but for its model block."""
    origin = BUNDLED / "agents" / agent_id
    return all(_PRINTS.get(folder / name) == _PRINTS.get(origin / name) for name in ("agent.yaml", "AGENT.md"))


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", errors="surrogateescape")


def _passed_over(relative: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in relative.parts)


_PRINTS: FileCache[str] = FileCache(lambda path, data: fingerprint(f"agents/{path.parent.name}/{path.name}", data))
