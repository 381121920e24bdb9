"""Admission: prepare requests for replies in the order of arrival, only a few at a time.

Otherwise, fifty requests that arrive together would be prepared at once in fifty threads, and all
replies would begin late.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from weakref import WeakKeyDictionary

# The maximum number of requests that a process prepares at the same time.
SLOTS = 3
# The maximum wait for a slot. Earlier requests may wait long for a lock or a remote embedder.
MAX_WAIT_S = 10.0

_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class Slot:
    """The slot that a request holds while it is prepared. Any thread may release it."""

    def __init__(self, gate: asyncio.Semaphore) -> None:
        self._gate: asyncio.Semaphore | None = gate
        self._loop = asyncio.get_running_loop()
        # If true, the reply releases the slot once its prompt is built.
        self.belongs_to_reply = False

    def release(self) -> None:
        gate, self._gate = self._gate, None
        if gate is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(gate.release)


_slot: ContextVar[Slot | None] = ContextVar("slot", default=None)


@asynccontextmanager
async def admitted() -> AsyncIterator[None]:
    """Wait for a slot. Hold it until the block ends or, with a reply, until its prompt is built."""
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
    """Transfer the slot of the current request to the reply that `task` generates. It is released
    at the latest when the task ends.
    """
    if (slot := _slot.get()) is not None:
        slot.belongs_to_reply = True
        task.add_done_callback(lambda task: slot.release())


def release() -> None:
    """Release the slot of the current request, because it is prepared."""
    if (slot := _slot.get()) is not None:
        slot.release()
