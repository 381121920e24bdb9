"""The answers of `tests.scripted` in the format of Anthropic's messages.

https://docs.claude.com/en/api/messages and https://docs.claude.com/en/docs/build-with-claude/streaming
"""

import json
from collections.abc import Iterator
from typing import Any

ERROR_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error(code: int, message: str) -> dict[str, object]:
    kind = ERROR_TYPES.get(code, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def _usage(answer: Any, prompt: int, completion: int) -> dict[str, int]:
    """Anthropic counts what it read from its cache apart."""
    return {
        "input_tokens": prompt - answer.cached,
        "cache_read_input_tokens": answer.cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": completion,
    }


def _blocks(answer: Any) -> list[dict[str, object]]:
    text = [{"type": "text", "text": answer.text}] if answer.text else []
    calls = [
        {"type": "tool_use", "id": key, "name": name, "input": json.loads(arguments)}
        for key, name, arguments in answer.calls
    ]
    return [*text, *calls]


def message(
    request: dict[str, Any], answer: Any, prompt: int, completion: int
) -> dict[str, object]:
    """The whole answer in one piece."""
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": _blocks(answer),
        "stop_reason": "tool_use" if answer.calls else "end_turn",
        "stop_sequence": None,
        "usage": _usage(answer, prompt, completion),
    }


def events(
    request: dict[str, Any], answer: Any, pieces: list[str], prompt: int
) -> Iterator[dict[str, object]]:
    """The events of a stream."""
    start = message(request, answer, prompt, 1) | {"content": [], "stop_reason": None}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(_blocks(answer)):
        empty = block | ({"text": ""} if block["type"] == "text" else {"input": {}})
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        parts = pieces if block["type"] == "text" else [json.dumps(block["input"])]
        for part in parts:
            delta = {"type": "text_delta", "text": part}
            if block["type"] != "text":
                delta = {"type": "input_json_delta", "partial_json": part}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None}
    usage = {"output_tokens": len(pieces)}
    yield {"type": "message_delta", "delta": stop, "usage": usage}
    yield {"type": "message_stop"}
