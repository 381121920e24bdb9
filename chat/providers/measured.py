"""A provider whose calls are measured."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from chat import metrics
from chat.options import Options
from chat.prompt import Said
from chat.providers.base import Completion, Delta, Finished, Provider, Shape


class Measured:
    def __init__(self, provider: Provider, model: str, kind: str) -> None:
        self.provider = provider
        self.model = model
        self.kind = kind

    async def stream(
        self, said: Sequence[Said], options: Options = Options()
    ) -> AsyncIterator[Delta | Finished]:
        with metrics.call(self.model, self.kind) as call:
            # Every provider's is a generator, which is to end with this one.
            stream: Any = self.provider.stream(said, options)
            async with aclosing(stream) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        call.finished(event)
                    else:
                        call.spoke()
                    yield event

    def complete(
        self, said: Sequence[Said], max_tokens: int, shape: Shape | None = None
    ) -> Completion:
        with metrics.call(self.model, self.kind) as call:
            answer = self.provider.complete(said, max_tokens, shape)
            call.finished(answer.finished)
            return answer
