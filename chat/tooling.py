"""Calls of tools: what a reply asks a program to do, and what came of it. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Protocol, TypeVar

from chat import tokens
from chat.storable import storable


@dataclass(frozen=True)
class ToolCall:
    """`arguments` are the model's own text, most often JSON, which nobody here reads."""

    id: str
    name: str
    arguments: str

    @property
    def tokens(self) -> int:
        return tokens.count(self.name) + tokens.count(self.arguments)


def written(calls: Iterable[ToolCall]) -> list[dict[str, str]]:
    """The calls as a message keeps them."""
    return [asdict(call) for call in calls]


def read(kept: object) -> tuple[ToolCall, ...]:
    """The calls that a message keeps; what is none is left out."""
    rows = kept if isinstance(kept, list) else []
    return tuple(
        ToolCall(*(storable(str(row.get(name) or "")) for name in ("id", "name", "arguments")))
        for row in rows
        if isinstance(row, dict) and row.get("id")
    )


class Speaks(Protocol):
    """A message: the calls that it makes, or the id of the one that it `answers`."""

    @property
    def text(self) -> str: ...
    @property
    def calls(self) -> tuple[ToolCall, ...]: ...
    @property
    def answers(self) -> str: ...


S = TypeVar("S", bound=Speaks)


def paired(messages: Sequence[S]) -> list[S]:
    """`messages` without the calls that are not answered, all of them and at once, and without the
    answers to nothing: providers refuse both. A message that only called goes with its calls.
    """
    kept: list[S] = []
    place = 0
    while place < len(messages):
        message = messages[place]
        place += 1
        if message.answers:
            continue
        answers = []
        while place < len(messages) and messages[place].answers:
            answers.append(messages[place])
            place += 1
        asked = {call.id for call in message.calls}
        found = {one.answers: one for one in answers if one.answers in asked}
        if found.keys() == asked:
            kept += [message, *found.values()]
        elif message.text:
            kept.append(replace(message, calls=()))  # type: ignore[type-var]
    return kept


def without_calls(messages: Iterable[S]) -> list[S]:
    """For a model that knows no tools."""
    said = (one for one in messages if not one.answers and (one.text or not one.calls))
    return [replace(one, calls=()) for one in said]  # type: ignore[type-var]
