"""Token counts of every vendor in one shape (`sessions_app.messages.Usage`): input without cache hits, cache apart."""

from typing import Any

from sessions_app.messages import Usage


def make_usage(*, fresh_input: int, output: int, cache_read: int = 0, cache_write: int = 0) -> Usage:
    """`fresh_input`: input tokens that were neither read from nor written to a cache, as Anthropic counts."""
    usage = Usage(
        inputTokens=fresh_input,
        outputTokens=output,
        totalTokens=fresh_input + output,
        cacheReadInputTokens=cache_read,
    )
    if cache_write:
        usage["cacheWriteInputTokens"] = cache_write
    return usage


_MOST = 2**53  # more is no count, and no column holds it


class AnthropicUsage:
    """Counts are cumulative over a stream and come in pieces, so the highest of each is the right one."""

    _FIELDS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def add(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        for name in self._FIELDS:
            if (count := _count(usage.get(name))) is not None:
                self._seen[name] = max(count, self._seen.get(name, 0))

    def result(self) -> Usage | None:
        """None when the vendor told nothing: unknown is not zero."""
        if not self._seen:
            return None
        fresh, output, read, write = (self._seen.get(name, 0) for name in self._FIELDS)
        return make_usage(fresh_input=fresh, output=output, cache_read=read, cache_write=write)


def chat_usage(usage: Any) -> Usage | None:
    """From a chat completions usage object; `prompt_tokens` includes cache hits there. None when it holds no counts."""
    if not isinstance(usage, dict):
        return None
    prompt, output = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if prompt is None and output is None:
        return None
    details = usage.get("prompt_tokens_details")
    hits = (
        details.get("cached_tokens") if isinstance(details, dict) else None,
        usage.get("prompt_cache_hit_tokens"),
        usage.get("cache_read_tokens"),
        usage.get("cached_tokens"),
    )
    cached = next((count for hit in hits if (count := _count(hit)) is not None), 0)
    return make_usage(fresh_input=max(0, (prompt or 0) - cached), output=output or 0, cache_read=cached)


def responses_usage(usage: Any) -> Usage | None:
    """From a usage object of the responses protocol; `input_tokens` includes cache hits. None without counts."""
    if not isinstance(usage, dict):
        return None
    given, output = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
    if given is None and output is None:
        return None
    details = usage.get("input_tokens_details")
    cached = (_count(details.get("cached_tokens")) if isinstance(details, dict) else None) or 0
    return make_usage(fresh_input=max(0, (given or 0) - cached), output=output or 0, cache_read=cached)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else None
