"""Renders replies in OpenAI's format, either complete or as a stream of chunks."""

import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chat.openai_api.errors import domain_error_body, error_body
from chat.prompt.types import ToolCall
from chat.providers import Delta, Thought
from chat.streaming import live_replies
from chat.streaming.live_replies import LiveReply
from chat.streaming.poller import StreamGrant, get_poller
from chat.streaming.sse import ACCESS_WITHDRAWN, PING, with_pings

DONE = b"data: [DONE]\n\n"
# OpenAI's API has no field for reasoning. DeepSeek, vLLM and LM Studio use this one.
REASONING = "reasoning_content"


@dataclass(frozen=True)
class ResponseEnvelope:
    """The common fields of the complete response, or of all chunks of a stream.

    With `include_usage`, a stream ends with a chunk of token counts.
    """

    id: str
    model: str
    created: int
    include_usage: bool = False

    @classmethod
    def create(cls, name: str, model: str, include_usage: bool) -> "ResponseEnvelope":
        return cls(f"chatcmpl-{name}", model, int(time.time()), include_usage)

    def wrap(self, object_type: str, **fields: Any) -> dict[str, Any]:
        shared = {"id": self.id, "object": object_type, "created": self.created}
        return shared | {"model": self.model, "system_fingerprint": None} | fields

    def chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        usage = {"usage": None} if self.include_usage else {}
        return _event(self.wrap("chat.completion.chunk", choices=[choice], **usage))


def completion(envelope: ResponseEnvelope, live: LiveReply) -> dict[str, Any]:
    """Return the complete reply. Raises `ProviderError` if the reply failed."""
    if live.failure is not None:
        raise live.failure
    calls = _tool_calls(live)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": live.text if live.text or not calls else None,
        "refusal": None,
    }
    if live.thinking:
        message[REASONING] = live.thinking
    if calls:
        message["tool_calls"] = [_tool_call(call) for call in calls]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _finish_reason(live),
    }
    return envelope.wrap("chat.completion", choices=[choice], usage=_usage(live))


async def stream_chunks(
    envelope: ResponseEnvelope, live: LiveReply, stop_on_close: bool, grant: StreamGrant
) -> AsyncIterator[bytes]:
    """Yield the reply as server-sent events while `grant` is valid.

    With `stop_on_close`, the reply is stopped when the reader disconnects.
    """
    try:
        has_content = bool(live.text) or not _tool_calls(live)
        yield envelope.chunk({"role": "assistant", "content": "" if has_content else None})
        with get_poller().checking(grant) as closed:
            async for change in with_pings(live_replies.follow_live(live), closed):
                if isinstance(change, Delta):
                    yield envelope.chunk({"content": change.text})
                elif isinstance(change, Thought):
                    yield envelope.chunk({REASONING: change.text})
                else:
                    # OpenAI's format has no event for lookups. A comment keeps the connection open.
                    yield PING
            if closed.is_set():
                yield _event(error_body(ACCESS_WITHDRAWN, 401, code="invalid_api_key"))
                return
        for event in _closing_events(envelope, live):
            yield event
    finally:
        if stop_on_close:
            live.stop()


def _closing_events(envelope: ResponseEnvelope, live: LiveReply) -> Iterator[bytes]:
    if live.failure is not None:
        yield _event(domain_error_body(live.failure))
        return
    for index, call in enumerate(_tool_calls(live)):
        function = {"name": call.name, "arguments": ""}
        opening = {"index": index, "id": call.id, "type": "function", "function": function}
        arguments = {"index": index, "function": {"arguments": call.arguments}}
        yield envelope.chunk({"tool_calls": [opening]})
        yield envelope.chunk({"tool_calls": [arguments]})
    yield envelope.chunk({}, _finish_reason(live))
    if envelope.include_usage:
        yield _event(envelope.wrap("chat.completion.chunk", choices=[], usage=_usage(live)))
    yield DONE


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def _tool_calls(live: LiveReply) -> tuple[ToolCall, ...]:
    return live.finished.calls if live.finished else ()


def _tool_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _finish_reason(live: LiveReply) -> str:
    if _tool_calls(live):
        return "tool_calls"
    if live.finished and live.finished.filtered:
        return "content_filter"
    return "length" if live.finished and live.finished.cut_off else "stop"


def _usage(live: LiveReply) -> dict[str, Any]:
    """Return the provider's token counts, or zeros for a reply that was stopped."""
    input_tokens = live.finished.input_tokens if live.finished else 0
    cached_tokens = live.finished.cached_tokens if live.finished else 0
    output_tokens = live.finished.output_tokens if live.finished else 0
    return {
        "prompt_tokens": input_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }
