"""Markdown to safe HTML: CommonMark with tables and strikethrough, code coloured by class names. A line
break stays one, as in the plain text that was shown while the answer streamed.

Two locks, because the text comes from a model: the parser turns raw HTML into text, and the result is cleaned against a
short list of tags. Fetching images is left out on purpose: a picture's address in an answer would tell a stranger's
server that it was read, so an image becomes a link. Bounds on sizes are the caller's business.
"""

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from sessions_app.log.encode import clean_text

MAX_COLOURED_CHARS = 50_000  # colouring a bigger block costs more than it helps
CACHED_TEXTS = 512

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul", "div",
}  # fmt: skip
_ATTRIBUTES = {
    "a": {"href", "title"},
    "div": {"class", "data-language"},
    "span": {"class"},
    "ol": {"start"},
    "td": {"class"},
    "th": {"class"},
}
_SCHEMES = {"http", "https", "mailto"}


class _Renderer(RendererHTML):
    """The stock renderer with our code blocks, links and images."""

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        token = tokens[idx]
        language = token.info.split()[0] if token.info.strip() else ""
        return code_block(token.content, language)

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return code_block(tokens[idx].content, "")

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        token = tokens[idx]
        address = str(token.attrs.get("src", ""))
        label = token.content or address or "image"
        return f'<a href="{escape(address)}">{escape(label)}</a>'

    def th_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return self._aligned(tokens, idx, options, env)

    def td_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return self._aligned(tokens, idx, options, env)

    def _aligned(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """The parser aligns by a style attribute, which the page's policy refuses: a class instead."""
        style = str(tokens[idx].attrs.pop("style", ""))
        if style.startswith("text-align:"):
            tokens[idx].attrSet("class", f"align-{style.removeprefix('text-align:').strip()}")
        return self.renderToken(tokens, idx, options, env)


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True}, renderer_cls=_Renderer).enable(
        ["table", "strikethrough"]
    )


_PARSER = _parser()
_FORMATTER = HtmlFormatter(nowrap=True)


def code_block(code: str, language: str) -> str:
    """One block of code, its language named for the page's copy bar."""
    label = language if len(language) <= 40 else ""
    return (
        f'<div class="code" data-language="{escape(label)}"><pre><code>{_coloured(code, language)}</code></pre></div>\n'
    )


def _coloured(code: str, language: str) -> str:
    if not language or len(code) > MAX_COLOURED_CHARS:
        return escape(code, quote=False)
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return escape(code, quote=False)
    return str(highlight(code, lexer, _FORMATTER))


@lru_cache(maxsize=CACHED_TEXTS)
def render(text: str) -> str:
    """Safe HTML of one finished block of an answer."""
    html: str = nh3.clean(
        _PARSER.render(clean_text(text)),  # old files hold halves of emoji
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        url_relative="deny",
        set_tag_attribute_values={"a": {"target": "_blank"}},
        link_rel="noopener noreferrer nofollow",
        clean_content_tags={"script", "style"},
    )
    return html
