"""Gives every tool call of a session an id of its own: some vendors count `call_0` anew in each reply. Pure."""

from dataclasses import replace

from agents_app.runtimes.base import Reply
from sessions_app.raw_history import RawHistory


def with_own_ids(reply: Reply, raw: RawHistory) -> Reply:
    """The reply with new ids for calls whose id the history has used; the same object when none is."""
    new: dict[int, str] = {}
    taken = raw.call_ids
    seen: set[str] = set()
    for index, call in enumerate(reply.tool_calls):
        name, number = call.id, 2
        while name in taken or name in seen:
            name, number = f"{call.id}_{number}", number + 1
        seen.add(name)
        if name != call.id:
            new[index] = name
    if not new:
        return reply
    calls = [replace(call, id=new.get(index, call.id)) for index, call in enumerate(reply.tool_calls)]
    ids = iter(call.id for call in calls)
    blocks = [
        {**block, "id": next(ids, block["id"])} if block.get("type") == "tool_use" else block for block in reply.blocks
    ]
    return replace(reply, blocks=blocks, tool_calls=calls)
