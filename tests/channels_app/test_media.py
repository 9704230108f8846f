"""Marker lines in a text."""

import pytest

from channels_app.media import split


@pytest.mark.parametrize(
    ("text", "left", "paths"),
    [
        ("A\n\nMEDIA: /w/a.png\n\nB", "A\n\nB", ("/w/a.png",)),
        ("MEDIA:/w/a.png", "", ("/w/a.png",)),
        ("MEDIA: /w/a.png\nMEDIA:\t/w/b c.pdf  \n", "", ("/w/a.png", "/w/b c.pdf")),
        ("A\r\nMEDIA: /w/a.png\r\nB", "A\r\n\nB", ("/w/a.png",)),
        ("one\nMEDIA: /a\ntwo\nMEDIA: /b\nthree", "one\n\ntwo\n\nthree", ("/a", "/b")),
    ],
)
def test_lines_become_paths(text: str, left: str, paths: tuple[str, ...]) -> None:
    found = split(text)
    assert (found.text, found.media) == (left, paths)


@pytest.mark.parametrize(
    "text",
    [
        "see MEDIA: /w/a.png",
        " MEDIA: /w/a.png",
        "media: /w/a.png",
        "MEDIA:\n/w/a.png",
        "MEDIA:   ",
        "a\n\n\n\nb\n",
        "",
        "x\u2028MEDIA: /w/a.png",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    found = split(text)
    assert (found.text, found.media) == (text, ())


def test_blanks_in_the_middle_take_no_long_time() -> None:
    text = "MEDIA: a" + " " * 200_000 + "b  "
    assert split(text).media == (text.removeprefix("MEDIA: ").rstrip(),)


def test_a_long_text_takes_no_long_time() -> None:
    found = split("MEDIA:" + " " * 200_000 + "\n" + "MEDIA: " + "a " * 100_000 + "\n")
    assert len(found.media) == 1
