"""view_image: what it gives the model, what it refuses, and that paths and access are those of file_read."""

import asyncio
import base64
import os
import threading

import pytest

from agents_app.images import MAX_IMAGE_BYTES
from agents_app.tools import view_image
from agents_app.tools.registry import TOOL_NAMES, tools_for
from tests.agents_app.tools.conftest import Bench
from tests.support.image_files import gif, jpeg, png, webp


@pytest.mark.parametrize(
    ("path", "data", "media_type"),
    [
        ("shots/a.png", png(40, 30), "image/png"),
        ("a.jpg", jpeg(40, 30), "image/jpeg"),
        ("a.gif", gif(40, 30), "image/gif"),
        ("a.webp", webp(40, 30), "image/webp"),
        ("jpeg-in-truth.png", jpeg(40, 30), "image/jpeg"),
        ("no-ending", png(40, 30), "image/png"),
    ],
)
async def test_the_result_is_a_line_and_the_image(bench: Bench, path: str, data: bytes, media_type: str) -> None:
    bench.put(path, data)
    result = await bench.tool("view_image", path=path)
    assert (result.is_error, result.text) == (False, f"{path}: {media_type}, {len(data)} bytes, 40 × 30 pixels")
    encoded = base64.b64encode(data).decode()
    source = {"type": "base64", "media_type": media_type, "data": encoded}
    assert list(result.images) == [{"type": "image", "source": source}]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty."),
        (b"some text\n", "is not a PNG, JPEG, GIF or WebP image."),
        (png(40, 30)[:-7], "is a PNG image that is damaged or cut off."),
        (png(9000, 1), "has 9,000 × 1 pixels; models take at most 8,000 a side. Make it smaller first."),
        (png(padding=MAX_IMAGE_BYTES), "has 5.0 MB; an image may have at most 5 MB. Make it smaller first."),
    ],
)
async def test_what_no_model_takes_is_told_and_not_given(bench: Bench, content: bytes, words: str) -> None:
    bench.put("x.png", content)
    result = await bench.tool("view_image", path="x.png")
    assert result.text == f'__TOOL_WARN__\nError: "x.png" {words}'
    assert result.is_error and not result.images


async def test_a_huge_file_is_refused_unread(bench: Bench) -> None:
    os.truncate(bench.put("huge.png"), 100 * 1024**3)  # sparse: more than memory holds
    assert "has 102400.0 MB" in await bench.error("view_image", path="huge.png")


@pytest.mark.parametrize("path", ["missing.png", "folder", "pipe", "/dev/zero", "loop", "file/x", "", "a\0b"])
async def test_what_cannot_be_read_is_told_as_file_read_tells_it(bench: Bench, path: str) -> None:
    bench.put("file")
    (bench.workspace / "folder").mkdir()
    os.mkfifo(bench.workspace / "pipe")
    (bench.workspace / "loop").symlink_to("loop")
    async with asyncio.timeout(20):
        assert await bench.error("view_image", path=path) == await bench.error("file_read", path=path)


@pytest.mark.parametrize("level", ["workspace", "readonly"])
async def test_below_full_access_nothing_outside_and_nothing_hidden_is_shown(bench: Bench, tmp_path, level) -> None:
    outside = tmp_path / "outside.png"
    outside.write_bytes(png())
    (bench.workspace / "link.png").symlink_to(outside)
    bench.put(".halo/logs/shot.png", png())
    bench.put("mine.png", png())
    (bench.workspace / "inner.png").symlink_to("mine.png")
    low = bench.at(level)
    for path in (str(outside), "link.png", "../outside.png", ".halo/logs/shot.png"):
        assert "access denied" in await low.error("view_image", path=path)
    assert len((await low.tool("view_image", path="inner.png")).images) == 1
    assert len((await bench.tool("view_image", path="link.png")).images) == 1
    assert "view_image" in tools_for(TOOL_NAMES, access=level)


async def test_the_loop_goes_on_while_the_file_is_read(bench: Bench, monkeypatch) -> None:
    bench.put("a.png", png())
    read_in: list[threading.Thread] = []
    real = view_image.image_block
    monkeypatch.setattr(
        view_image, "image_block", lambda *given: read_in.append(threading.current_thread()) or real(*given)
    )
    await bench.tool("view_image", path="a.png")
    assert read_in and read_in[0] is not threading.main_thread()


def test_only_models_with_vision_are_offered_it() -> None:
    assert "view_image" in tools_for(TOOL_NAMES, vision=True)
    assert set(TOOL_NAMES) - set(tools_for(TOOL_NAMES, vision=False)) == {"view_image"}
