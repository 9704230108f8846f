"""Which images may go to a model: each format's type and dimensions, what is cut off or damaged, what is too big."""

import base64
import random

import pytest

from agents_app.images import MAX_IMAGE_BYTES, ImageFacts, ImageRefused, check_size, image_block, image_facts
from tests.support.image_files import gif, jpeg, png, webp

WHOLE = {
    "png": (png(3, 2), "image/png"),
    "jpeg": (jpeg(3, 2), "image/jpeg"),
    "progressive jpeg": (jpeg(3, 2, frame=0xC2), "image/jpeg"),
    "gif 87": (gif(3, 2, b"GIF87a"), "image/gif"),
    "gif 89": (gif(3, 2), "image/gif"),
    "lossy webp": (webp(3, 2), "image/webp"),
    "lossless webp": (webp(3, 2, b"VP8L"), "image/webp"),
    "extended webp": (webp(3, 2, b"VP8X"), "image/webp"),
}


def refusal(data: bytes) -> ImageRefused:
    with pytest.raises(ImageRefused) as caught:
        image_facts(data)
    return caught.value


@pytest.mark.parametrize("name", WHOLE)
def test_the_bytes_tell_type_and_dimensions(name: str) -> None:
    data, media_type = WHOLE[name]
    assert image_facts(data) == ImageFacts(media_type, 3, 2)


@pytest.mark.parametrize("name", WHOLE)
def test_no_beginning_of_an_image_is_one(name: str) -> None:
    data, _ = WHOLE[name]
    for length in range(len(data)):
        assert refusal(data[:length]).code == "bad_image"
    assert refusal(data[:-1]).message.endswith("image that is damaged or cut off.")


@pytest.mark.parametrize("name", ["png", "jpeg", "lossy webp"])
def test_what_cameras_and_editors_put_behind_the_end_does_no_harm(name: str) -> None:
    data, media_type = WHOLE[name]
    assert image_facts(data + b"\0trailer").media_type == media_type


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty."),
        (b"\0" * 100, "is not a PNG, JPEG, GIF or WebP image."),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is not a PNG, JPEG, GIF or WebP image."),
        (b"BM" + bytes(60), "is not a PNG, JPEG, GIF or WebP image."),
        (b"RIFF\x24\0\0\0WAVEfmt " + bytes(40), "is not a PNG, JPEG, GIF or WebP image."),
        (b"\x89PNG\r\n\x1a\n" + bytes(300), "is a PNG image that is damaged or cut off."),
        (png(0, 5), "is a PNG image that is damaged or cut off."),
        (jpeg(5, 0), "is a JPEG image that is damaged or cut off."),
        (gif(0, 0), "is a GIF image that is damaged or cut off."),
        (webp(1, 1, b"ALPH"), "is a WebP image that is damaged or cut off."),
    ],
)
def test_what_is_no_image_is_refused_with_the_reason(data: bytes, words: str) -> None:
    refused = refusal(data)
    assert (refused.message, refused.code, refused.status) == (words, "bad_image", 400)


def test_sides_beyond_what_vendors_take_are_refused() -> None:
    assert image_facts(png(8000, 1)).width == 8000
    for data in (png(8001, 1), gif(1, 8001), jpeg(9000, 2), webp(2, 16_000), webp(16_384, 1, b"VP8L")):
        assert refusal(data).code == "image_too_large"
    assert refusal(png(8001, 1)).message.startswith("has 8,001 × 1 pixels; models take at most 8,000 a side.")


def test_size_is_bounded_before_anything_else_is_looked_at() -> None:
    whole = png(padding=MAX_IMAGE_BYTES - len(png()) - 12)
    assert len(whole) == MAX_IMAGE_BYTES and image_facts(whole).media_type == "image/png"
    refused = refusal(bytes(MAX_IMAGE_BYTES + 300_000))
    assert refused.message.startswith("has 5.3 MB; an image may have at most 5 MB.")
    assert (refused.code, refused.status) == ("image_too_large", 413)
    with pytest.raises(ImageRefused):
        check_size(MAX_IMAGE_BYTES + 1)


def test_no_damage_raises_anything_else() -> None:
    chance = random.Random(5)
    for _ in range(3000):
        data = bytearray(chance.choice(list(WHOLE.values()))[0])
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            image_facts(bytes(data))
        except ImageRefused:
            pass


def test_a_block_is_the_raw_history_s_own_form() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png()).decode()}
    assert image_block(png(), "image/png") == {"type": "image", "source": source}
