"""Slow readers hold up nothing that writes or runs."""

import asyncio
import threading

from agents_app.tools.threads import Cancelled, in_thread, in_thread_to_end


async def test_many_readers_that_hang_hold_up_no_write() -> None:
    end = threading.Event()

    def hang(cancelled: Cancelled) -> None:
        assert end.wait(60)

    readers = [asyncio.create_task(in_thread(hang)) for _ in range(40)]
    try:
        await asyncio.sleep(0)
        assert await asyncio.wait_for(in_thread_to_end(lambda cancelled: "written"), timeout=10) == "written"
        assert not any(reader.done() for reader in readers)
    finally:
        end.set()
        await asyncio.gather(*readers)
