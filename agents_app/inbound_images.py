"""Images that come with a message: written under the workspace's assets before the message is queued."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from halo_project.errors import Forbidden
from halo_project.layout import WorkspaceLayout
from halo_project.real_paths import is_inside

_SUFFIX = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


@dataclass(frozen=True, slots=True)
class InboundImage:
    """An image as a door received and checked it. `mime_type` is one of png, jpeg, gif, webp."""

    data: bytes
    mime_type: str


def save_images(workspace: Path, images: Sequence[InboundImage], now: datetime) -> list[dict[str, str]]:
    """Write each image and return what a queue row keeps of it: path relative to the workspace, and its type.

    Raises Forbidden when a link in the workspace leads the folder for them out of it.
    """
    if not images:
        return []
    folder = WorkspaceLayout(workspace).assets / "web" / "inbound" / "web" / now.strftime("%Y-%m-%d")
    if not is_inside(folder, workspace):
        raise Forbidden(
            f"{folder} leads out of the workspace; put a plain folder there, then send the image again.",
            code="assets_outside",
        )
    folder.mkdir(parents=True, exist_ok=True)
    saved = []
    for image in images:
        name = f"image_{now:%H%M%S}_{secrets.token_hex(3)}{_SUFFIX.get(image.mime_type, '.bin')}"
        with open(folder / name, "xb") as file:
            file.write(image.data)
        saved.append({"path": str((folder / name).relative_to(workspace)), "mimeType": image.mime_type})
    return saved
