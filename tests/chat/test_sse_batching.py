"""Streams of models in fewer and longer pieces: nothing is lost, changed or held back."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.providers import http_clients
from chat.providers.http_clients import EVENT_END, BatchedEventStream, TextChannel, batch_events


class Scripted(httpx2.AsyncByteStream):
    """Chunks that come one after the other, `pause` seconds between two, whether anybody reads them
    or not, and then an error. Those that have come are read together.
    """

    def __init__(
        self, chunks: Sequence[bytes], pause: float = 0, error: Exception | None = None
    ) -> None:
        self.chunks = chunks
        self.pause = pause
        self.error = error
        self.began = self.read = 0
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.began += 1
        await asyncio.sleep(self.pause)
        begun = time.monotonic()
        while self.read < len(self.chunks):
            if (wait := begun + self.read * self.pause - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            came = int((time.monotonic() - begun) / self.pause) if self.pause else 0
            first, self.read = self.read, max(self.read + 1, min(came + 1, len(self.chunks)))
            yield b"".join(self.chunks[first : self.read])
        if self.error is not None:
            raise self.error

    async def aclose(self) -> None:
        self.closed = True


def event(delta: dict, finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "1", "model": "m", "choices": [choice]} | more).encode()


def word(text: str, **more: object) -> bytes:
    return event({"content": text}, **more) + b"\n\n"


def events(data: bytes) -> list:
    """What a stream says: the data of each of its events, as JSON where it is."""
    events_read = []
    for line in data.replace(b"\r\n", b"\n").split(b"\n\n"):
        if line:
            try:
                events_read.append(json.loads(line.removeprefix(b"data: ")))
            except ValueError:
                events_read.append(line)
    return events_read


def texts(events_read: Sequence) -> list[tuple[str, str]]:
    """The runs of text that are said, by where they stand."""
    runs: list[tuple[str, str]] = []
    for item in events_read:
        if not isinstance(item, dict) or item["choices"] == []:
            runs.append(("", str(item)))
            continue
        [(key, text)] = item["choices"][0]["delta"].items()
        if runs and runs[-1][0] == key != "tool_calls":
            runs[-1] = (key, runs[-1][1] + text)
        else:
            runs.append((key, text))
    return runs


async def read_batches(stream: httpx2.AsyncByteStream, **options) -> list[bytes]:
    batched = BatchedEventStream(stream, **options)
    try:
        return [piece async for piece in batched]
    finally:
        await batched.aclose()


deltas = st.one_of(
    st.tuples(st.sampled_from(["content", "reasoning_content"]), st.text(min_size=1)).map(
        lambda message: event({message[0]: message[1]})
    ),
    st.text().map(lambda arguments: event({"tool_calls": [{"function": arguments}]})),
    st.sampled_from([b": still here", b"data: [DONE]", b"data: {nonsense", event({}) * 0 + b"x"]),
    st.integers().map(lambda spent: b'data: {"choices": [], "usage": %d}' % spent),
)


@given(
    st.lists(deltas, max_size=30),
    st.sampled_from([b"\n\n", b"\r\n\r\n"]),
    st.lists(st.integers(1, 40), min_size=1),
)
def test_any_text_arrives_whole_however_it_is_cut(message, between, sizes):
    data, chunks, place = b"".join(item + between for item in message), [], 0
    while place < len(data):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(data[place : place + size])
        place += size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_clients, "PAUSE_S", 0)
        output = b"".join(asyncio.run(read_batches(Scripted(chunks))))
    assert texts(events(output)) == texts(events(data))


def test_only_events_of_chat_completions_need_a_sign_of_the_end():
    chunks = [
        b'event: response.created\ndata: {"tools": [{"properties": {"choices": {}}}]}\n\n',
        b'event: response.completed\ndata: {"type": "response.completed"}\n\n',
    ]
    batches = asyncio.run(read_batches(Scripted(chunks), has_length=False))
    assert b"".join(batches) == b"".join(chunks)
    with pytest.raises(httpx2.RemoteProtocolError):
        asyncio.run(read_batches(Scripted([word("Hello", usage="")]), has_length=False))


def test_words_that_arrive_together_are_one_event():
    data = b"".join(
        word(f"{number} ", created=number, obfuscation="x" * number) for number in range(9)
    )
    [text] = events(b"".join(asyncio.run(read_batches(Scripted([data])))))
    assert text["choices"][0]["delta"] == {"content": "0 1 2 3 4 5 6 7 8 "}
    assert (text["id"], text["model"], text["created"]) == ("1", "m", 0)


@pytest.mark.parametrize(
    "other",
    [
        event({"content": "b"}, "stop"),
        event({"content": "b", "tool_calls": [{"index": 0}]}),
        event({"content": "b", "refusal": "No."}),
        event({"reasoning_content": "b"}),
        event({"content": "b"}, model="another"),
        event({"content": "b"}, usage={"completion_tokens": 2}),
        event({"content": ["b"]}),
        b'data: {"choices": [{"index": 1, "delta": {"content": "b"}}], "id": "1", "model": "m"}',
        b'data: {"error": {"message": "Overloaded"}}',
        b'event: error\ndata: {"choices": []}',
    ],
)
def test_events_with_more_than_text_are_left_unchanged(other):
    data = word("a") + other + b"\n\n" + word("c")
    assert b"".join(asyncio.run(read_batches(Scripted([data])))) == data


async def _gaps(others: int, pause: float) -> list[bytes]:
    """What is told of thirty words, `pause` seconds apart, while `others` are heard."""
    alone = Scripted([word("word ")] * 30, pause=pause)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_clients, "_open_streams", {object() for _ in range(others)})
        return await read_batches(alone)


def test_with_one_stream_most_words_are_delivered_at_once():
    # A busy machine delays some words, which then come together.
    assert len(asyncio.run(_gaps(0, 0.03))) >= 15


def test_with_hundreds_of_streams_each_delivers_a_few_times_a_second():
    gaps = asyncio.run(_gaps(100, 0.02))
    assert 2 <= len(gaps) <= 4
    assert texts(events(b"".join(gaps))) == [("content", "word " * 30)]
    # The first word waits for nobody.
    assert gaps[0] == word("word ")


def test_other_events_keep_their_place_between_merged_text(monkeypatch):
    async def hear() -> list[bytes]:
        source = Scripted([word("word ")] * 30, pause=0.02)
        stream = BatchedEventStream(source)
        contents = [await anext(aiter(stream))]
        coming = asyncio.create_task(anext(aiter(stream)))
        await asyncio.sleep(0.1)
        assert source.read == 1
        contents.append(await coming)
        await stream.aclose()
        return contents

    monkeypatch.setattr(http_clients, "PAUSE_S", 0.8)
    pieces = asyncio.run(hear())
    assert [texts(events(piece)) for piece in pieces] == [
        [("content", "word ")],
        [("content", "word " * 29)],
    ]


def test_another_may_go_on_where_one_left_off():
    """As the SDK does, which reads what comes after the last event until the line is free."""

    async def hear() -> tuple[bytes, int]:
        source = Scripted([word("a"), b"data: [DONE]\n\n", b": bye\n\n"], pause=0.01)
        stream = BatchedEventStream(source)
        output = b""
        async for piece in stream:
            output += piece
            if piece.startswith(b"data: [DONE]"):
                break
        output += b"".join([piece async for piece in stream])
        await stream.aclose()
        return output, source.began

    assert asyncio.run(hear()) == (word("a") + b"data: [DONE]\n\n: bye\n\n", 1)


def test_nobody_waits_for_more_after_the_last_event(monkeypatch):
    async def hear() -> None:
        source = Scripted([word("a") + b"data: [DONE]\n\n", b": bye\n\n"], pause=0.01)
        async with asyncio.timeout(300):
            await read_batches(source)

    monkeypatch.setattr(http_clients, "PAUSE_S", 3_600)
    asyncio.run(hear())


@pytest.mark.parametrize("text", ["a", "<"])
def test_the_text_before_a_broken_connection_is_delivered(text):
    async def hear() -> list[bytes]:
        broken = BatchedEventStream(
            Scripted([word(text), b"data: half"], error=httpx2.ReadError("reset"))
        )
        pieces = []
        with pytest.raises(httpx2.ReadError):
            async for piece in broken:
                pieces += [piece]
        await broken.aclose()
        return pieces

    assert b"".join(asyncio.run(hear())) == word(text) + b"data: half"


def test_an_event_without_end_is_given_up():
    chunks = [word("Hello"), b"data: ", *[b"x" * 100_000] * 50]
    stream = Scripted(chunks)

    async def read() -> bytes:
        async with aclosing(BatchedEventStream(stream)) as batched:
            first = await anext(aiter(batched))
            with pytest.raises(httpx2.RemoteProtocolError, match="too large"):
                _rest = [piece async for piece in batched]
            return first

    [first] = events(asyncio.run(read()))
    assert first["choices"][0]["delta"] == {"content": "Hello"}
    assert stream.read < 20


def test_an_event_in_many_pieces_is_searched_once(monkeypatch):
    class Pattern:
        searched = 0

        def search(self, data: bytes) -> object:
            self.searched += len(data)
            return EVENT_END.search(data)

        def split(self, data: bytes) -> list[bytes]:
            self.searched += len(data)
            return EVENT_END.split(data)

    pattern = Pattern()
    monkeypatch.setattr(http_clients, "EVENT_END", pattern)
    pieces = [b"data: ", *[b"x"] * 10_000, b"\r", b"\n\r", b"\n"]
    assert (
        b"".join(asyncio.run(read_batches(Scripted(pieces)))) == b"data: " + b"x" * 10_000 + b"\n\n"
    )
    assert pattern.searched < 60_000


def test_other_tasks_get_their_turn_between_events():
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def read() -> None:
        others = asyncio.create_task(take_turns())
        await read_batches(Scripted([b":\n\n" * 100_000]))
        others.cancel()

    asyncio.run(read())
    assert turns > 100


def test_nobody_reads_on_when_its_reader_has_left():
    async def hear() -> int:
        endless = Scripted([word("word ")] * 1_000, pause=0.001)
        stream = BatchedEventStream(endless)
        async with aclosing(aiter(stream)) as pieces:
            await anext(pieces)
        await stream.aclose()
        read = endless.read
        await asyncio.sleep(0.05)
        assert endless.closed
        assert not http_clients._open_streams
        return endless.read - read

    assert asyncio.run(hear()) == 0


def test_other_answers_are_left_alone():
    stream = Scripted([word("a") + word("b")])
    answer = httpx2.Response(200, headers={"content-type": "application/json"}, stream=stream)
    asyncio.run(batch_events(answer))
    assert answer.stream is stream


async def _read_through_channel(
    source: Scripted, meanings: Mapping[str, str] = {}
) -> tuple[list[str], list[bytes]]:
    """What a reader gets, and what is interpreted: parts of texts by `meanings`."""
    channel, interpreted = TextChannel(), []

    async def interpret() -> None:
        stream = BatchedEventStream(source, channel)
        async for piece in stream:
            interpreted.append(piece)
            for kind, text in texts(events(piece)):
                for part, meaning in meanings.items():
                    text = text.replace(part, meaning)
                if kind == "content" and text:
                    channel.add_interpreted(text)
        await stream.aclose()

    work = asyncio.create_task(interpret())
    return [piece.text async for piece in channel.read(work)], interpreted


def test_plain_text_is_interpreted_in_one_piece_at_the_end():
    words = [word(f"{number} ") for number in range(9)]
    source = Scripted([*words, b"data: [DONE]\n\n"], pause=0.03)
    pieces, interpreted = asyncio.run(_read_through_channel(source))
    assert "".join(pieces) == "0 1 2 3 4 5 6 7 8 "
    # The first text, the rest of it, and the end.
    assert len(interpreted) <= 3
    assert texts(events(b"".join(interpreted[:-1]))) == [("content", "0 1 2 3 4 5 6 7 8 ")]
    assert interpreted[-1] == b"data: [DONE]\n\n"


def test_marks_are_interpreted_before_the_reader_gets_them():
    source = Scripted([word("a"), word("b"), word("<think>"), b"data: [DONE]\n\n"], pause=0.03)
    read = asyncio.run(_read_through_channel(source, {"<think>": ""}))[0]
    assert "".join(read) == "ab"


@given(st.lists(deltas, max_size=30), st.integers(1, 5))
def test_the_reader_gets_all_text_in_order(message, at_once):
    data = [item + b"\n\n" for item in message]
    chunks = [b"".join(data[place : place + at_once]) for place in range(0, len(data), at_once)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_clients, "PAUSE_S", 0)
        pieces, interpreted = asyncio.run(_read_through_channel(Scripted(chunks)))
    content = [text for kind, text in texts(events(b"".join(data))) if kind == "content"]
    assert "".join(pieces) == "".join(content)
    assert texts(events(b"".join(interpreted))) == texts(events(b"".join(data)))
