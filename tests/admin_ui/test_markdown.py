"""Markdown is rendered for reading and can carry nothing that acts."""

import pytest

from admin_ui.markdown.render import render


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<b onclick=x>bold</b>",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](data:text/html,<script>alert(1)</script>)",
        "![a](javascript:alert(1))",
        "<iframe src=//evil.example></iframe>",
        '<a href="https://x.example" style="position:fixed">a</a>',
        '```"><script>alert(1)</script>\nx\n```',
        "```html\n<script>alert(1)</script>\n```",
        "| a |\n|:-:|\n| <svg onload=x> |",
    ],
)
def test_nothing_that_acts_comes_out(text):
    html = render(text)
    for forbidden in (
        "<script",
        "<img",
        "<iframe",
        "<svg",
        "onclick=",
        "onerror=",
        "style=",
        'href="javascript',
        "data:text",
    ):
        # As text, `onerror=` may be read; as an attribute it may not stand inside a tag.
        assert forbidden not in "".join(part.split(">")[0] for part in html.split("<")[1:]) and (
            not forbidden.startswith("<") or forbidden not in html
        ), html


def test_links_open_elsewhere_and_tell_nothing():
    html = render("[Halo](https://example.org/a?b=1&c=2)")
    assert 'target="_blank"' in html and "noopener" in html and "noreferrer" in html
    assert 'href="https://example.org/a?b=1&amp;c=2"' in html


def test_an_image_becomes_a_link_so_that_no_strangers_server_is_asked():
    html = render("![a cat](https://example.org/cat.png)")
    assert "<img" not in html and ">a cat</a>" in html and 'target="_blank"' in html


def test_a_relative_link_is_only_text():
    assert "href" not in render("[file](src/x.py)")


def test_code_is_coloured_by_classes_and_keeps_its_text():
    html = render("```python\ndef f(): return '<x>'\n```")
    assert 'data-language="python"' in html and 'class="k"' in html and "&lt;x&gt;" in html
    assert 'data-language="nosuch"' in render("```nosuch\nx\n```")
    assert "<code>\n\n<span" in render("```python\n\n\nx\n```"), "leading empty lines are kept"


def test_tables_are_aligned_by_class():
    html = render("| a | b |\n|:-:|--:|\n| 1 | 2 |")
    assert '<th class="align-center">a</th>' in html and '<td class="align-right">2</td>' in html


def test_a_line_break_stays_one():
    assert "<br" in render("one\ntwo")


@pytest.mark.parametrize("text", ["", "\u2028", "a\u2028b", "🙂" * 1000, "\ud83d", "*" * 5000, "[" * 2000, "> " * 500])
def test_odd_texts_are_survived(text):
    assert isinstance(render(text), str)
