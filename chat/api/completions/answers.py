"""Replies on OpenAI's wire: whole, or as chunks."""

import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chat import streams
from chat.admission import Grant
from chat.api.completions import errors
from chat.api.streaming import PING, WITHDRAWN, or_silence
from chat.polling import poll
from chat.streams import Live
from chat.tooling import ToolCall

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Envelope:
    """What every answer to one request carries. With `usage`, a stream ends with what it took."""

    id: str
    model: str
    created: int
    usage: bool = False

    def around(self, kind: str, **fields: Any) -> dict[str, Any]:
        about = {"id": self.id, "object": kind, "created": self.created, "model": self.model}
        return about | {"system_fingerprint": None} | fields

    @classmethod
    def made(cls, name: str, model: str, usage: bool) -> "Envelope":
        return cls(f"chatcmpl-{name}", model, int(time.time()), usage)


def completion(envelope: Envelope, live: Live) -> dict[str, Any]:
    """The whole answer, once it is said. Raises Refused when there is none."""
    if live.failure is not None:
        raise errors.failed(live.failure)
    calls = _calls(live)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": live.text if live.text or not calls else None,
        "refusal": None,
    }
    if calls:
        message["tool_calls"] = [_call(one) for one in calls]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _finish(live),
    }
    return envelope.around("chat.completion", choices=[choice], usage=_usage(live))


async def chunks(envelope: Envelope, live: Live, end: bool, grant: Grant) -> AsyncIterator[bytes]:
    """The answer as events, as it is said, while `grant` holds. Whoever stops listening ends it
    with `end`.
    """
    try:
        words = bool(live.text) or not _calls(live)
        yield _chunk(envelope, {"role": "assistant", "content": "" if words else None})
        with poll().admitting(grant) as closed:
            async for delta in or_silence(streams.heard(live), closed):
                yield PING if delta is None else _chunk(envelope, {"content": delta.text})
            if closed.is_set():
                yield _event(errors.told(WITHDRAWN, 401, None, "invalid_api_key"))
                return
        for event in _ending(envelope, live):
            yield event
    finally:
        if end:
            live.stop()


def _ending(envelope: Envelope, live: Live) -> Iterator[bytes]:
    if live.failure is not None:
        yield _event(errors.failed(live.failure).body)
        return
    for number, call in enumerate(_calls(live)):
        told = _call(call)
        opening = told | {"index": number, "function": told["function"] | {"arguments": ""}}
        rest = {"index": number, "function": {"arguments": call.arguments}}
        yield _chunk(envelope, {"tool_calls": [opening]})
        yield _chunk(envelope, {"tool_calls": [rest]})
    yield _chunk(envelope, {}, _finish(live))
    if envelope.usage:
        fields = {"choices": [], "usage": _usage(live)}
        yield _event(envelope.around("chat.completion.chunk", **fields))
    yield DONE


def _chunk(envelope: Envelope, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    usage = {"usage": None} if envelope.usage else {}
    return _event(envelope.around("chat.completion.chunk", choices=[choice], **usage))


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def _calls(live: Live) -> tuple[ToolCall, ...]:
    return live.finished.calls if live.finished else ()


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _finish(live: Live) -> str:
    if _calls(live):
        return "tool_calls"
    return "length" if live.finished and live.finished.cut_off else "stop"


def _usage(live: Live) -> dict[str, int]:
    """In tokens, as the provider counts them; none for a reply that somebody stopped."""
    taken = live.finished.input_tokens if live.finished else 0
    given = live.finished.output_tokens if live.finished else 0
    return {
        "prompt_tokens": taken,
        "completion_tokens": given,
        "total_tokens": taken + given,
    }
