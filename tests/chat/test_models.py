"""The models behind the providers."""

import gc

import pytest
from asgiref.sync import async_to_sync
from openai import AsyncOpenAI

from chat import providers
from chat.prompt.types import PromptMessage
from chat.providers import Finished
from tests.scripted import Answer


def clients() -> int:
    gc.collect()
    return sum(issubclass(type(instance), AsyncOpenAI) for instance in gc.get_objects())


@pytest.mark.django_db
def test_a_call_leaves_no_client_behind(scripted):
    before = clients()
    for _ in range(3):
        providers.get_provider("openai-chat:scripted", "reply").complete(
            [PromptMessage("user", "Hello")], max_tokens=10
        )
    assert clients() <= before


@pytest.mark.django_db
def test_a_server_that_tells_no_usage_is_heard_and_counted_for(scripted):
    provider = providers.get_provider("openai-chat:scripted", "reply")
    messages = [PromptMessage("user", "When is the cutover?")]
    scripted.queue(*[Answer("On 3 March it is.", tells_usage=False)] * 2)

    async def last():
        return [event async for event in provider.stream(messages)][-1]

    for finished in (async_to_sync(last)(), provider.complete(messages, max_tokens=10).finished):
        assert isinstance(finished, Finished)
        assert (finished.input_tokens, finished.output_tokens) == (messages[0].tokens, 7)
        assert finished.cost is None
