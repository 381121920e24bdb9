"""The models behind the providers."""

import gc

import pytest
from openai import AsyncOpenAI

from chat import providers
from chat.prompt import Said


def clients() -> int:
    gc.collect()
    return sum(isinstance(one, AsyncOpenAI) for one in gc.get_objects())


@pytest.mark.django_db
def test_a_call_leaves_no_client_behind(scripted):
    before = clients()
    for _ in range(3):
        providers.get("openai-chat:scripted", "reply").complete(
            [Said("user", "Hello")], max_tokens=10
        )
    assert clients() <= before
