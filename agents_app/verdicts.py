"""What a failed model call says about a provider, in one word and one line.

Structured signals come first; a vendor's words are read for what has no status of its own: an empty account or an
unknown model behind a 400, 403 or 429.
"""

import re
from typing import Literal

from agents_app.runtimes.errors import ModelError, StreamTruncated

# misconfigured: Halo's own settings, or an address where no model is served. error: anything else, see the detail.
Verdict = Literal[
    "ok", "no_key", "wrong_key", "no_credit", "throttled", "model_unknown", "unreachable", "misconfigured", "error"
]

_LONGEST = 400
_REFUSED = {400, 403, 422, 429}
_ELSEWHERE = {301, 302, 303, 307, 308, 404, 405}
_CREDIT_TYPES = {"insufficient_quota", "billing_error", "exceeded_current_quota_error", "Arrearage"}
_CREDIT_WORDS = re.compile(
    r"insufficient[ _](balance|quota|funds|credit)|credit balance|account.{0,20}(overdue|arrear)|余额不足|欠费", re.I
)
_MODEL_WORDS = re.compile(
    r"\bmodel\b[^.]{0,80}?\b(not found|not exist|isn't supported|is (invalid|unknown|not (supported|available|valid)))"
    r"|\b(no such|unknown|invalid|unsupported|not a valid|access to( the)?) model\b|模型不存在",
    re.I,
)
_PAGE = re.compile(r"<(!doctype|html|head|body)\b", re.I)
_INVISIBLE = re.compile(r"<(script|style)\b.*?(</\1\s*>|$)|<!--.*?(-->|$)|<[^>]*(>|$)", re.I | re.S)


def verdict_of(error: ModelError, *, has_key: bool = True) -> Verdict:
    """has_key: False where the credentials of an AWS account, or none at all, went along."""
    status, words = error.http_status, _vendors_words(error)
    if status == 402 or error.error_type in _CREDIT_TYPES or (status in _REFUSED and _CREDIT_WORDS.search(words)):
        return "no_credit"
    if status == 429 or error.kind == "throttled":
        return "throttled"
    if status in _ELSEWHERE:
        # The right place knows what it was asked for; a wrong one only that there is nothing.
        said = words.partition(": ")[2]  # before it stands the provider's name, which may hold the word
        return "model_unknown" if status == 404 and "model" in said.lower() else "misconfigured"
    if status in _REFUSED and _MODEL_WORDS.search(words):
        return "model_unknown"
    if error.kind == "account":
        return "wrong_key" if has_key or status is not None else "no_key"
    if error.kind == "network" and not isinstance(error, StreamTruncated):
        return "unreachable"
    return "error"


def detail_of(error: ModelError, verdict: Verdict) -> str:
    if isinstance(error, StreamTruncated):
        return f"{one_line(error.message)} It may be no model that answers there: check the endpoint."
    if verdict == "no_credit":
        return one_line(_vendors_words(error))  # the hint may speak of throttling
    if verdict == "throttled":
        return f"{one_line(error.message)} The key seems to be in order."
    return one_line(error.message)


def one_line(text: str) -> str:
    """Short, without line breaks, the tags of an error page, or what would steer a terminal."""
    if _PAGE.search(text):
        text = _INVISIBLE.sub(" ", text)
    line = "".join(char if char.isprintable() else " " for char in " ".join(text.split()))
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "…"


def _vendors_words(error: ModelError) -> str:
    """The message without the hint that is ours; failures of no known kind have none, but for a 404."""
    hinted = error.kind != "fatal" or error.http_status == 404
    return error.message.rsplit(" — ", 1)[0] if hinted else error.message
