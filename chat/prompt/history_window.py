"""Selection of the messages and images of a conversation that a prompt contains.

Values in, values out: nothing here reads the database.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from chat.prompt.types import PromptImage, PromptMessage

# Anthropic takes more, but then no image of more than 2,000 pixels a side.
# https://docs.claude.com/en/docs/build-with-claude/vision
MAX_IMAGES = 20


def fit(messages: Sequence[PromptMessage], limit: int, budget: int) -> list[PromptMessage]:
    """Return the newest of `messages`, oldest first: at most `limit` and at most `budget` tokens.

    Messages are never cut. Where the budget ends the window, the window begins with a user's
    message, so that no answer stands without its question.
    """
    recent = messages[-limit:] if limit else []
    window: list[PromptMessage] = []
    for message in reversed(recent):
        budget -= message.tokens
        if budget < 0:
            break
        window.append(message)
    if len(window) < len(recent):
        while window and window[-1].role != "user":
            window.pop()
    window.reverse()
    return window


def choose_images(
    newest_first: Iterable[PromptImage], budget: int, limit: int = MAX_IMAGES
) -> set[UUID]:
    """Return the ids of the newest images: at most `limit`, together at most `budget` tokens."""
    chosen: set[UUID] = set()
    for image in newest_first:
        budget -= image.tokens
        if budget < 0 or len(chosen) >= limit:
            break
        chosen.add(image.id)
    return chosen


def drop_unpaired_calls(messages: Sequence[PromptMessage]) -> list[PromptMessage]:
    """Remove tool calls that are not all answered at once, and answers without a call.

    Providers refuse both. A message without text is removed together with its calls.
    """
    paired: list[PromptMessage] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if message.tool_call_id:
            continue
        call_ids = {call.id for call in message.calls}
        answers: dict[str, PromptMessage] = {}
        while index < len(messages) and messages[index].tool_call_id:
            if messages[index].tool_call_id in call_ids:
                answers[messages[index].tool_call_id] = messages[index]
            index += 1
        if answers.keys() == call_ids:
            paired += [message, *answers.values()]
        elif message.text:
            paired.append(replace(message, calls=()))
    return paired


def without_calls(messages: Iterable[PromptMessage]) -> list[PromptMessage]:
    """Return the messages for a model that does not support tools."""
    spoken = (one for one in messages if not one.tool_call_id and (one.text or not one.calls))
    return [replace(message, calls=()) for message in spoken]
