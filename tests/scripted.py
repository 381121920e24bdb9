"""A model server with scripted answers, at the wire of OpenAI's chat completions.

    with ScriptedModel() as model:
        model.status(429, retry_after=7)
        model.say("Hello")
        client = OpenAI(base_url=model.base_url, api_key="none")

Each request takes the next behaviour of the queue, or else `model.default`. A behaviour is an
Answer, a text to say, or a function that is given the request's JSON and returns one of these.
`python -m tests.scripted --port N` serves by hand, repeating what it hears.
"""

import argparse
import json
import re
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from django.conf import settings
from django.db import connections

from tests import scripted_anthropic

MODEL = "scripted"
Request = dict[str, object]


@dataclass(frozen=True)
class Answer:
    """What one request gets. `delay` (seconds) is before each piece, `before` before the first;
    with `permits`, each piece of a stream waits for one. `parts` are the pieces, if not words.
    """

    text: str = ""
    delay: float = 0
    before: float = 0
    finish: str = "stop"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    ending: Literal["whole", "hangs", "breaks", "garbage"] = "whole"
    permits: threading.Semaphore | None = None
    # (id, name, arguments) of each
    calls: tuple[tuple[str, str, str], ...] = ()
    parts: tuple[str, ...] = ()
    # Pieces of reasoning before the text of a stream.
    thoughts: tuple[str, ...] = ()
    tells_usage: bool = True
    # Tokens of the prompt that came from the cache.
    cached: int = 0
    # The tokens in and out that it claims, if not those that it counted.
    claims: tuple[int, int] | None = None


Behaviour = Answer | str | Callable[[Request], Answer | str]


def echo(request: Request) -> str:
    """A behaviour: repeats the last message."""
    return _messages(request)[-1]["content"]


def echo_prompt(request: Request) -> str:
    """A behaviour: repeats every message, one a line, each after its role."""
    return "\n".join(f"{message['role']}: {message['content']}" for message in _messages(request))


def _messages(request: Request) -> list[dict[str, str]]:
    """The messages of a request, contents that come in parts put together."""
    messages = request["messages"]
    assert isinstance(messages, list)
    return [
        {"role": message["role"], "content": _text(message.get("content"))} for message in messages
    ]


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return str(content or "")


def pieces(text: str) -> list[str]:
    """`text` in words, each with the space before it. A piece counts as a token."""
    return re.findall(r"\s*\S+|\s+$", text)


class ScriptedModel:
    """The server, from `with` to its end. `requests` are the JSON of all chat requests so far."""

    def __init__(self, port: int = 0, default: Behaviour = "Scripted.") -> None:
        self._first_default = default
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.model = self
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._released = threading.Event()
        self._reset()

    def _reset(self) -> None:
        self.default = self._first_default
        # The only key that is accepted; any if it is empty.
        self.key = ""
        self.models = [MODEL]
        self._queue: deque[Behaviour] = deque()
        self._requests: list[Request] = []
        # The tokens in, cached and out of all whole answers.
        self.counted: tuple[int, int, int] = (0, 0, 0)
        # Requests whose caller went away before their answer's end.
        self.abandoned = 0

    def __enter__(self) -> "ScriptedModel":
        # The interval is how long leaving may take.
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.reset()
        self._server.shutdown()
        self._server.server_close()

    def queue(self, *behaviours: Behaviour) -> None:
        """The next requests get `behaviours`, one each."""
        with self._lock:
            self._queue.extend(behaviours)

    def say(self, text: str, *, delay: float = 0, before: float = 0, finish: str = "stop") -> None:
        """Next: `text`, streamed word by word; `finish="length"` says that it was cut off."""
        self.queue(Answer(text, delay, before, finish))

    def call(self, *calls: tuple[str, str, str], text: str = "") -> None:
        """Next: calls of tools, each an id, a name and arguments, behind `text`."""
        self.queue(Answer(text, finish="tool_calls", calls=calls))

    def dictate(self, text: str) -> threading.Semaphore:
        """Next: `text`, a word of it each time that what is returned is released."""
        permits = threading.Semaphore(0)
        self.queue(Answer(text, permits=permits))
        return permits

    def status(self, code: int, retry_after: float | None = None) -> None:
        """Next: an error, such as 401, 429 or 500."""
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self.queue(Answer(f"Scripted {code}", status=code, headers=headers))

    def hang(self, text: str = "", *, delay: float = 0) -> None:
        """Next: `text`, if it is streamed, then silence with the connection left open."""
        self.queue(Answer(text, delay, ending="hangs"))

    def half(self, text: str, *, delay: float = 0) -> None:
        """Next: `text`, then a broken connection."""
        self.queue(Answer(text, delay, ending="breaks"))

    def nothing(self) -> None:
        """Next: status 200 and a proper answer that has no content."""
        self.queue(Answer())

    def garbage(self) -> None:
        """Next: status 200 and a body, or the event of a stream, that is not JSON."""
        self.queue(Answer("<html>Bad gateway", ending="garbage"))

    def reset(self) -> None:
        """Forgets requests and behaviours, and lets go of every caller that is left hanging."""
        with self._lock:
            self._released.set()
            self._released = threading.Event()
            self._reset()

    @property
    def requests(self) -> list[Request]:
        with self._lock:
            return list(self._requests)

    def answer(self, request: Request) -> tuple[Answer, threading.Event]:
        """The next answer, with what is set when those that hang are let go."""
        with self._lock:
            self._requests.append(request)
            behaviour = self._queue.popleft() if self._queue else self.default
            released = self._released
        if callable(behaviour):
            behaviour = behaviour(request)
            # What it asked of the database was asked in this thread, which goes now.
            if settings.configured:
                connections.close_all()
        answer = Answer(behaviour) if isinstance(behaviour, str) else behaviour
        if answer.status == 200 and answer.ending == "whole":
            usage = _usage(request, answer)
            now = (usage["prompt_tokens"], answer.cached, usage["completion_tokens"])
            with self._lock:
                before = self.counted
                self.counted = (before[0] + now[0], before[1] + now[1], before[2] + now[2])
        return answer, released

    def was_abandoned(self) -> None:
        with self._lock:
            self.abandoned += 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Leaving must not wait for a caller that keeps its connection open.
    block_on_close = False
    request_queue_size = 256
    model: ScriptedModel

    def handle_error(self, request: object, client_address: object) -> None:
        """Says what went wrong here; that a caller went away between two requests is nothing."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def _is_known(self) -> bool:
        key = self.server.model.key
        sent = (self.headers.get("Authorization", ""), self.headers.get("x-api-key", ""))
        return not key or f"Bearer {key}" in sent or key in sent

    def do_GET(self) -> None:
        if not self._is_known():
            self._send(401, _error(401, "Wrong key"))
        elif self.path == "/v1/models":
            rows = [
                {"id": name, "object": "model", "created": 0, "owned_by": "tests"}
                for name in self.server.model.models
            ]
            self._send(200, {"object": "list", "data": rows})
        else:
            self._send(404, _error(404, "Not found"))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self._is_known():
            self._send(401, _error(401, "Wrong key"))
            return
        is_anthropic = self.path.partition("?")[0] == "/v1/messages"
        if self.path != "/v1/chat/completions" and not is_anthropic:
            self._send(404, _error(404, "Not found"))
            return
        payload = json.loads(body)
        answer, released = self.server.model.answer(payload)
        try:
            if is_anthropic:
                self._answer_as_anthropic(payload, answer)
            else:
                self._answer(payload, answer, released)
        except ConnectionError:
            self.close_connection = True
            self.server.model.was_abandoned()

    def _answer(self, request: Request, answer: Answer, released: threading.Event) -> None:
        if answer.status != 200:
            self._send(answer.status, _error(answer.status, answer.text), answer.headers)
        elif request.get("stream"):
            self._stream(request, answer, released)
        else:
            self._speak(request, answer, released)

    def _answer_as_anthropic(self, request: Request, answer: Answer) -> None:
        usage = _usage(request, answer)
        prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
        if answer.status != 200:
            self._send(answer.status, scripted_anthropic.error(answer.status, answer.text))
        elif not request.get("stream"):
            self._send(200, scripted_anthropic.message(request, answer, prompt, completion))
        else:
            self._begin(200, "text/event-stream", {"Transfer-Encoding": "chunked"})
            for event in scripted_anthropic.events(request, answer, pieces(answer.text), prompt):
                self._chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self._chunk(b"")

    def _speak(self, request: Request, answer: Answer, released: threading.Event) -> None:
        """The answer in one piece, at the time its last piece would have come."""
        self._wait(answer.before + answer.delay * len(pieces(answer.text)), released)
        body = json.dumps(_completion(request, answer)).encode()
        if answer.ending == "garbage":
            body = answer.text.encode()
        if answer.ending == "hangs":
            self._wait(None, released)
        if answer.ending in ("hangs", "breaks"):
            self._begin(200, "application/json", {"Content-Length": str(len(body))})
            self.wfile.write(body[: len(body) // 2])
            self._break()
        else:
            self._send_bytes(200, body)

    def _stream(self, request: Request, answer: Answer, released: threading.Event) -> None:
        self._begin(200, "text/event-stream", {"Transfer-Encoding": "chunked"})
        self._wait(answer.before, released)
        for event in _events(request, answer):
            if event.is_piece:
                self._wait(answer.delay, released)
                self._wait_for(answer.permits, released)
            self._chunk(f"data: {event.data}\n\n".encode())
        if answer.ending == "hangs":
            self._wait(None, released)
        if answer.ending in ("hangs", "breaks"):
            self._break()
        else:
            self._chunk(b"")

    def _wait(self, seconds: float | None, released: threading.Event) -> None:
        """Waits so long (None: for ever), unless the caller goes away, which raises, or reset()."""
        end = None if seconds is None else time.monotonic() + seconds
        while not released.is_set():
            left = 0.05 if end is None else min(0.05, end - time.monotonic())
            if left <= 0:
                return
            self._listen(left)

    def _wait_for(self, permits: threading.Semaphore | None, released: threading.Event) -> None:
        """Waits for a permit, if they are needed, unless the caller goes away or reset()."""
        while permits and not released.is_set() and not permits.acquire(blocking=False):
            self._listen(0.02)

    def _listen(self, seconds: float) -> None:
        """Waits so long. While it waits for an answer, a caller has nothing to send but its end,
        which raises.
        """
        if select.select([self.connection], [], [], seconds)[0]:
            raise ConnectionResetError

    def _chunk(self, data: bytes) -> None:
        """One chunk of a chunked body, in one packet; an empty one ends it (RFC 9112, 7.1)."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _break(self) -> None:
        """Ends the connection, wherever its body is, when this request is done."""
        self.close_connection = True

    def _send(self, code: int, content: object, headers: dict[str, str] | None = None) -> None:
        self._send_bytes(code, json.dumps(content).encode(), headers)

    def _send_bytes(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        size = {"Content-Length": str(len(body))}
        self._begin(code, "application/json", size | (headers or {}))
        self.wfile.write(body)

    def _begin(self, code: int, kind: str, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in ({"Content-Type": kind} | headers).items():
            self.send_header(name, value)
        self.end_headers()


def _error(code: int, message: str) -> dict[str, object]:
    return {"error": {"message": message, "type": "scripted", "param": None, "code": str(code)}}


def _usage(request: Request, answer: Answer) -> dict[str, Any]:
    """Tokens as this server counts them: pieces."""
    prompt = sum(len(pieces(message["content"])) for message in _messages(request))
    completion = len(pieces(answer.text))
    if answer.claims is not None:
        prompt, completion = answer.claims
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": answer.cached},
    }


def _envelope(request: Request, kind: str) -> dict[str, object]:
    return {
        "id": "chatcmpl-scripted",
        "object": kind,
        "created": int(time.time()),
        "model": request.get("model", MODEL),
    }


def _completion(request: Request, answer: Answer) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": answer.text}
    if answer.calls:
        message["tool_calls"] = [_call(call, call[2]) for call in answer.calls]
    choice = {"index": 0, "message": message, "finish_reason": answer.finish, "logprobs": None}
    usage = {"usage": _usage(request, answer)} if answer.tells_usage else {}
    return _envelope(request, "chat.completion") | {"choices": [choice]} | usage


def _call(call: tuple[str, str, str], arguments: str) -> dict[str, object]:
    key, name, _ = call
    return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}


@dataclass(frozen=True)
class _Event:
    data: str
    is_piece: bool = False


def _events(request: Request, answer: Answer) -> Iterator[_Event]:
    """The events of a stream: the role, the pieces, the end, the usage if asked for, [DONE]."""
    if answer.ending == "garbage":
        yield _Event(answer.text)
        return
    yield _event(request, {"role": "assistant", "content": ""})
    for thought in answer.thoughts:
        yield _event(request, {"reasoning_content": thought})
    for piece in answer.parts or pieces(answer.text):
        yield _event(request, {"content": piece}, is_piece=True)
    for number, call in enumerate(answer.calls):
        head, tail = call[2][:5], call[2][5:]
        yield _event(request, {"tool_calls": [_call(call, head) | {"index": number}]})
        more = {"index": number, "function": {"arguments": tail}}
        yield _event(request, {"tool_calls": [more]})
    if answer.ending != "whole":
        return
    yield _event(request, {}, finish=answer.finish)
    options = request.get("stream_options")
    if answer.tells_usage and isinstance(options, dict) and options.get("include_usage"):
        chunk = _envelope(request, "chat.completion.chunk")
        yield _Event(json.dumps(chunk | {"choices": [], "usage": _usage(request, answer)}))
    yield _Event("[DONE]")


def _event(
    request: Request, delta: dict[str, object], finish: str | None = None, is_piece: bool = False
) -> _Event:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    chunk = _envelope(request, "chat.completion.chunk") | {"choices": [choice]}
    return _Event(json.dumps(chunk), is_piece)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serves a scripted model that repeats.")
    parser.add_argument("--port", type=int, default=0)
    with ScriptedModel(parser.parse_args().port, default=echo) as model:
        print(model.base_url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
