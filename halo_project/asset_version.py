"""A name for the present state of the pages' own files. Pure, so that settings can use it."""

import hashlib
from pathlib import Path


def tree_version(root: Path) -> str:
    """Ten hex digits that change when a file of the tree is added, removed or changed."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file():
            facts = path.stat()
            digest.update(f"{path.relative_to(root)}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:10]
