"""A reply of a model that is not there, so that all is loaded when one that is there is asked."""

import asyncio

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

SAID = (
    b'data: {"id": "0", "object": "chat.completion.chunk", "created": 0, "model": "none",'
    b' "choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


def rehearse() -> None:
    """Has OpenAI's SDK and pydantic-ai do what they put off until a first stream is heard."""
    asyncio.run(_hear())


async def _hear() -> None:
    headers = {"content-type": "text/event-stream"}
    answer = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, content=SAID))
    async with httpx2.AsyncClient(transport=answer) as http:
        provider = OpenAIProvider(base_url="http://none.invalid", api_key="none", http_client=http)
        model = OpenAIChatModel("none", provider=provider)
        async with model_request_stream(model, [ModelRequest.user_text_prompt("?")]) as heard:
            async for _ in heard:
                pass
