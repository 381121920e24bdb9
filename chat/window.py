"""Which messages of a conversation stand in the prompt."""

from collections.abc import Sequence
from typing import Protocol, TypeVar


class Said(Protocol):
    @property
    def role(self) -> str: ...
    @property
    def tokens(self) -> int: ...


S = TypeVar("S", bound=Said)

# What a chat model's wire format adds to each message, in tokens.
# https://github.com/openai/openai-cookbook/blob/main/examples/How_to_count_tokens_with_tiktoken.ipynb
PER_MESSAGE = 4


def fit(messages: Sequence[S], limit: int, budget: int) -> list[S]:
    """The newest of `messages`, oldest first: at most `limit` of them, at most `budget` tokens.

    Whole messages only; and where the budget cuts, never between an answer and its question: what
    is left opens with what a person said.
    """
    recent = messages[-limit:] if limit else []
    taken: list[S] = []
    for message in reversed(recent):
        budget -= message.tokens + PER_MESSAGE
        if budget < 0:
            break
        taken.append(message)
    if len(taken) < len(recent):
        while taken and taken[-1].role != "user":
            taken.pop()
    taken.reverse()
    return taken
