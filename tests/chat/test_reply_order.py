"""Requests for replies are prepared in the order of their arrival, a few at a time."""

import asyncio

import pytest

from chat.conversations import admission

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def one_slot(monkeypatch):
    monkeypatch.setattr(admission, "SLOTS", 1)


async def turn() -> None:
    """Let every other task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


class Request:
    """A request that holds its slot until `finish`; a reply to it ends at `end_reply`."""

    def __init__(self, with_reply: bool = False) -> None:
        self.is_admitted = False
        self._finished, self._prepared, self._ended = (asyncio.Event() for _ in range(3))
        self.task = asyncio.create_task(self._run(with_reply))

    async def _run(self, with_reply: bool) -> None:
        async with admission.admitted():
            self.is_admitted = True
            if with_reply:
                self.reply = asyncio.create_task(self._reply())
                admission.hand_over(self.reply)
            await self._finished.wait()

    async def _reply(self) -> None:
        await self._prepared.wait()
        admission.release()
        await self._ended.wait()

    async def finish(self) -> None:
        self._finished.set()
        await turn()

    async def prepare(self) -> None:
        self._prepared.set()
        await turn()


async def test_requests_are_admitted_in_order():
    requests = [Request() for _ in range(3)]
    await turn()
    for number, request in enumerate(requests):
        assert [other.is_admitted for other in requests] == [index <= number for index in range(3)]
        await request.finish()


async def test_a_reply_holds_the_slot_until_its_prompt_is_built():
    first, second = Request(with_reply=True), Request()
    await turn()
    await first.finish()
    assert not second.is_admitted
    await first.prepare()
    assert second.is_admitted
    third = Request()
    await turn()
    assert not third.is_admitted


@pytest.mark.parametrize("end", ["cancelled", "never begun"])
async def test_a_reply_that_ends_early_releases_the_slot(end):
    first, second = Request(with_reply=True), Request()
    if end == "cancelled":
        await turn()
    else:
        # It is cancelled before its first step.
        while not first.is_admitted:
            await asyncio.sleep(0)
    first.reply.cancel()
    await first.finish()
    assert second.is_admitted


async def test_a_request_that_is_cancelled_releases_the_slot():
    first, second, third = Request(), Request(), Request()
    await turn()
    second.task.cancel()
    first.task.cancel()
    await turn()
    assert third.is_admitted


async def test_a_request_waits_only_for_some_time(monkeypatch):
    monkeypatch.setattr(admission, "MAX_WAIT_S", 0.0)
    first, second = Request(), Request()
    await asyncio.wait_for(second.finish(), 5)
    assert second.is_admitted
    assert not first.task.done()
