"""Warm-up: loads the modules that the first model call needs, with a reply from a mocked server."""

import asyncio

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

RESPONSE = (
    b'data: {"id": "0", "object": "chat.completion.chunk", "created": 0, "model": "none",'
    b' "choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


def load_client_code() -> None:
    """Run the initialisation that OpenAI's SDK and pydantic-ai postpone until the first stream."""
    asyncio.run(_stream_mocked_reply())


async def _stream_mocked_reply() -> None:
    headers = {"content-type": "text/event-stream"}
    server = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, content=RESPONSE))
    async with httpx2.AsyncClient(transport=server) as http:
        provider = OpenAIProvider(base_url="http://none.invalid", api_key="none", http_client=http)
        model = OpenAIChatModel("none", provider=provider)
        async with model_request_stream(model, [ModelRequest.user_text_prompt("?")]) as stream:
            async for _ in stream:
                pass
