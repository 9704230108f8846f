"""The model server's answers in OpenAI's responses protocol."""

from collections.abc import Iterator
from typing import Any

from tests.support.model_replies import Event, ModelReply, arguments, pieces

_INCOMPLETE = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}


def response_object(reply: ModelReply, model: str, number: int) -> dict[str, Any]:
    """A whole response, as it is given without streaming and with the last event of a stream."""
    reason = _INCOMPLETE.get(reply.reason())
    return {
        "id": f"resp_{number}", "object": "response", "created_at": 0, "model": model,
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "error": None, "output": _items(reply), "usage": _usage(reply.usage),
    }  # fmt: skip


def responses_events(reply: ModelReply, model: str, number: int) -> Iterator[Event]:
    begun = {**response_object(ModelReply(usage=None), model, number), "status": "in_progress"}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for place, item in enumerate(_items(reply)):
        opened = {**item, "status": "in_progress"}
        opened |= (
            {"content": []} if "content" in item else {"arguments": ""} if "arguments" in item else {"summary": []}
        )
        yield {"type": "response.output_item.added", "output_index": place, "item": opened}
        yield from _deltas(reply, place, item)
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
    final = response_object(reply, model, number)
    yield {"type": f"response.{final['status']}", "response": final}


def _deltas(reply: ModelReply, place: int, item: dict[str, Any]) -> Iterator[Event]:
    where = {"output_index": place, "item_id": item["id"]}
    if item["type"] == "reasoning":
        for piece in pieces(reply.thinking, reply.delta_chars):
            yield {"type": "response.reasoning_summary_text.delta", **where, "summary_index": 0, "delta": piece}
    elif item["type"] == "message":
        yield {"type": "response.content_part.added", **where, "content_index": 0, "part": {"type": "output_text"}}
        for piece in pieces(reply.text, reply.delta_chars):
            yield {"type": "response.output_text.delta", **where, "content_index": 0, "delta": piece}
        yield {"type": "response.output_text.done", **where, "content_index": 0, "text": "".join(reply.text)}
    else:
        for piece in pieces(item["arguments"], reply.delta_chars):
            yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
        yield {"type": "response.function_call_arguments.done", **where, "arguments": item["arguments"]}


def _items(reply: ModelReply) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.thinking:
        summary = [{"type": "summary_text", "text": "".join(reply.thinking)}]
        items.append({"type": "reasoning", "id": "rs_1", "summary": summary})
    if reply.text:
        content = [{"type": "output_text", "text": "".join(reply.text), "annotations": []}]
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content})
    for number, call in enumerate(reply.all_calls(), 1):
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": call.id,
                "name": call.name,
                "arguments": arguments(call),
                "status": "completed",
            }
        )
    return items


def _usage(usage: dict[str, int] | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    cached = usage.get("cache_read_input_tokens", 0)
    given, output = usage.get("input_tokens", 0) + cached, usage.get("output_tokens", 0)
    return {
        "input_tokens": given, "output_tokens": output, "total_tokens": given + output,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
