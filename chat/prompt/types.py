"""The parts of a prompt as plain values: messages, images, tool calls, sections and the receipt."""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from uuid import UUID

from projects.core import token_counting
from projects.core.text import storable

# Tokens that a chat model's wire format adds to each message.
# https://github.com/openai/openai-cookbook/blob/main/examples/How_to_count_tokens_with_tiktoken.ipynb
MESSAGE_OVERHEAD_TOKENS = 4
_ID = re.compile(r"[0-9a-fA-F-]{32,36}|[0-9]+")

# The groups in which people see the sources of a reply. Other kinds of items are memories.
SOURCE_GROUPS = ("memory", "fact", "quote", "block")
_GROUP_OF_KIND = {"fact": "fact", "block": "block", "chunk": "quote", "message": "quote"}

F = TypeVar("F", bound=Callable)


def source_group(kind: str) -> str:
    """Return the group of an item of a receipt by its kind."""
    return _GROUP_OF_KIND.get(kind, "memory")


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool. `arguments` is the model's own text, usually JSON, and is not parsed."""

    id: str
    name: str
    arguments: str

    @property
    def tokens(self) -> int:
        return token_counting.count(self.name) + token_counting.count(self.arguments)


def dump_tool_calls(calls: Iterable[ToolCall]) -> list[dict[str, str]]:
    """Return the calls as a message stores them."""
    return [asdict(call) for call in calls]


def load_tool_calls(stored: object) -> tuple[ToolCall, ...]:
    """Return the calls that a message stores. Malformed ones are skipped."""
    rows = stored if isinstance(stored, list) else []
    return tuple(
        ToolCall(*(storable(str(row.get(name) or "")) for name in ("id", "name", "arguments")))
        for row in rows
        if isinstance(row, dict) and row.get("id")
    )


@dataclass(frozen=True)
class Lookup:
    """A call of one of Strata's own tools by a model: what chats show of it.

    `arguments` is the model's own text. `result_count` is the number of items that the tool
    returned; it is None while the tool runs, and if the call was refused with `error`.
    """

    tool: str
    arguments: str
    result_count: int | None = None
    error: str = ""

    @property
    def summary(self) -> str:
        """The texts among the arguments, for people: no ids and numbers."""
        try:
            values = json.loads(self.arguments).values()
        except (ValueError, AttributeError, RecursionError):
            return ""
        texts = (" ".join(value.split()) for value in values if isinstance(value, str))
        return " · ".join(text for text in texts if text and not _ID.fullmatch(text))[:300]


def load_lookups(stored: object) -> tuple[Lookup, ...]:
    """Return the lookups that a message stores. Malformed ones are skipped."""
    rows = stored if isinstance(stored, list) else []
    return tuple(
        Lookup(
            storable(str(row.get("tool") or "")),
            storable(str(row.get("arguments") or "")),
            result_count=row["result_count"] if isinstance(row.get("result_count"), int) else None,
            error=storable(str(row.get("error") or "")),
        )
        for row in rows
        if isinstance(row, dict)
    )


@dataclass(frozen=True)
class PromptImage:
    """An image in a prompt.

    `path` is its name in the default storage; an image that is not stored has `data` instead.
    Width and height are in pixels.
    """

    id: UUID
    media_type: str
    description: str
    width: int
    height: int
    path: str = ""
    data: bytes = field(default=b"", repr=False)

    @property
    def tokens(self) -> int:
        """The cost by the more expensive of two formulas.

        OpenAI: 85 and 170 for each tile of 512 pixels, once the shorter side is scaled to 768.
        https://platform.openai.com/docs/guides/images-vision#calculating-costs
        Anthropic: one token for each 750 pixels, at most 1,600.
        https://docs.claude.com/en/docs/build-with-claude/vision#calculate-image-costs
        """
        scale = min(1.0, 768 / min(self.width, self.height))
        tiles = math.ceil(self.width * scale / 512) * math.ceil(self.height * scale / 512)
        return max(85 + 170 * tiles, min(1_600, math.ceil(self.width * self.height / 750)))

    @property
    def placeholder(self) -> str:
        """The text that replaces the image for a model without vision."""
        description = " ".join(self.description.split())
        return f"[image: {description}]" if description else "[image]"


@dataclass(frozen=True)
class PromptMessage:
    """One message as the model reads it. `role` is system, user, assistant or tool.

    The bytes of `images` are loaded when the message is sent. `text_tokens` is the length of `text`
    where it is known. `calls` are the tool calls of an assistant; `tool_call_id` is the call that
    a tool's message answers. `source` is the stored message, for receipts. `native` is the
    provider's own form of an assistant's message, which is sent back unchanged: some models need
    parts of it that have no place here.
    """

    role: str
    text: str
    images: tuple[PromptImage, ...] = ()
    text_tokens: int | None = None
    calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    source: Any = field(default=None, compare=False, repr=False)
    native: Any = field(default=None, compare=False, repr=False)

    @cached_property
    def tokens(self) -> int:
        text = token_counting.count(self.text) if self.text_tokens is None else self.text_tokens
        images = sum(image.tokens for image in self.images)
        calls = sum(call.tokens for call in self.calls)
        return text + images + calls + MESSAGE_OVERHEAD_TOKENS

    @property
    def plain_text(self) -> str:
        """The message with placeholders for its images."""
        return "\n".join(filter(None, [self.text, *(image.placeholder for image in self.images)]))


@dataclass(frozen=True)
class PromptItem:
    """One item of a section, by kind, id and revision, for receipts and pages.

    If the prompt contains only some of its lines, `lines` are their places, from 0, among its `of`
    lines.
    """

    kind: str
    id: UUID
    revision: int
    tokens: int
    label: str
    lines: Sequence[int] = ()
    of: int = 0


@dataclass(frozen=True)
class PromptSection:
    name: str
    messages: tuple[PromptMessage, ...]
    items: tuple[PromptItem, ...] = ()

    @cached_property
    def tokens(self) -> int:
        return sum(message.tokens for message in self.messages)


@dataclass(frozen=True)
class BudgetShare:
    """The part of the budget that is reserved for a section, and the maximum that it may take."""

    floor: float = 0.0
    ceiling: float = 1.0


def share(*, floor: float = 0.0, ceiling: float = 1.0) -> Callable[[F], F]:
    """Return a decorator that sets the share of the budget of a section function."""

    def mark(function: F) -> F:
        function.share = BudgetShare(floor, ceiling)  # type: ignore[attr-defined]
        return function

    return mark


@dataclass(frozen=True)
class Prompt:
    sections: tuple[PromptSection, ...]
    budget: int
    model: str = ""

    @cached_property
    def messages(self) -> tuple[PromptMessage, ...]:
        """All messages; the leading system messages are joined, since many models take only one."""
        messages = [message for section in self.sections for message in section.messages]
        system: list[str] = []
        while messages and messages[0].role == "system":
            system.append(messages.pop(0).text)
        if system:
            messages.insert(0, PromptMessage("system", "\n\n".join(system)))
        return tuple(messages)

    @property
    def tokens(self) -> int:
        return sum(section.tokens for section in self.sections)

    def receipt(self) -> dict[str, object]:
        """Return the content by id and revision, without any text."""
        fields = ("kind", "revision", "tokens")
        return {
            "model": self.model,
            "budget": self.budget,
            "sections": [
                {
                    "name": section.name,
                    "tokens": section.tokens,
                    "items": [
                        {"id": str(item.id)}
                        | {name: getattr(item, name) for name in fields}
                        | ({"lines": list(item.lines), "of": item.of} if item.lines else {})
                        for item in section.items
                    ],
                }
                for section in self.sections
            ],
        }
