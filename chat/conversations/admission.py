"""Admission: requests for replies are prepared in the order of their arrival, a few at a time.

Without it, fifty requests that arrive together are prepared side by side in threads, and all of
them begin late.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from weakref import WeakKeyDictionary

# Requests that a process prepares at the same time.
SLOTS = 3
# A request waits no longer for those before it, which may wait for a lock or a remote embedder.
MAX_WAIT_S = 10.0

_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class Slot:
    """The place of a request among those that are prepared. Any thread may release it."""

    def __init__(self, gate: asyncio.Semaphore) -> None:
        self._gate: asyncio.Semaphore | None = gate
        self._loop = asyncio.get_running_loop()
        # A reply releases the slot when its prompt is built.
        self.belongs_to_reply = False

    def release(self) -> None:
        gate, self._gate = self._gate, None
        if gate is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(gate.release)


_slot: ContextVar[Slot | None] = ContextVar("slot", default=None)


@asynccontextmanager
async def admitted() -> AsyncIterator[None]:
    """Wait for a slot, and hold it inside the block, or until the reply's prompt is built."""
    gate = _gates.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(SLOTS))
    try:
        async with asyncio.timeout(MAX_WAIT_S):
            await gate.acquire()
    except TimeoutError:
        yield
        return
    slot = Slot(gate)
    token = _slot.set(slot)
    try:
        yield
    finally:
        _slot.reset(token)
        if not slot.belongs_to_reply:
            slot.release()


def hand_over(task: asyncio.Task[None]) -> None:
    """Let the reply that `task` generates hold the slot of the current request, at most until its
    end.
    """
    if (slot := _slot.get()) is not None:
        slot.belongs_to_reply = True
        task.add_done_callback(lambda task: slot.release())


def release() -> None:
    """Admit the next request: the current one is prepared."""
    if (slot := _slot.get()) is not None:
        slot.release()
