"""The parts of a prompt as plain values: messages, images, tool calls, sections and receipts."""

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

# The number of tokens that a chat model's wire format adds to each message.
# https://github.com/openai/openai-cookbook/blob/main/examples/How_to_count_tokens_with_tiktoken.ipynb
MESSAGE_OVERHEAD_TOKENS = 4
_ID = re.compile(r"[0-9a-fA-F-]{32,36}|[0-9]+")

# Pages show the sources of a reply in these groups. Other kinds of items belong to "memory".
SOURCE_GROUPS = ("memory", "fact", "quote", "file", "block")
_GROUP_OF_KIND = {kind: kind for kind in ("fact", "file", "block")} | {
    "chunk": "quote",
    "message": "quote",
}

F = TypeVar("F", bound=Callable)


def source_group(kind: str) -> str:
    """Return the group of an item in a receipt, from its kind."""
    return _GROUP_OF_KIND.get(kind, "memory")


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool. `arguments` is unparsed text of the model, usually JSON."""

    id: str
    name: str
    arguments: str

    @property
    def tokens(self) -> int:
        return token_counting.count(self.name) + token_counting.count(self.arguments)


def dump_tool_calls(calls: Iterable[ToolCall]) -> list[dict[str, str]]:
    """Return the calls in the form in which a message stores them."""
    return [asdict(call) for call in calls]


def load_tool_calls(stored: object) -> tuple[ToolCall, ...]:
    """Return the calls that a message stores. Malformed calls are skipped."""
    rows = stored if isinstance(stored, list) else []
    return tuple(
        ToolCall(*(storable(str(row.get(name) or "")) for name in ("id", "name", "arguments")))
        for row in rows
        if isinstance(row, dict) and row.get("id")
    )


@dataclass(frozen=True)
class Lookup:
    """A model's call of one of Strata's own tools, as chats show it.

    `arguments` is the model's own text. `result_count` is the number of items that the tool
    returned. It is None while the tool runs, or if the call failed with `error`.
    """

    tool: str
    arguments: str
    result_count: int | None = None
    error: str = ""

    @property
    def summary(self) -> str:
        """The texts in the arguments, for users, without ids and numbers."""
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

    `path` is its name in the default storage. An image that is not stored has `data` instead. Width
    and height are in pixels.
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
        """The number of tokens that the image costs: the larger result of two formulas.

        - OpenAI: 85, and 170 for each tile of 512 × 512 pixels, with the shorter side reduced to
          768. https://platform.openai.com/docs/guides/images-vision#calculating-costs
        - Anthropic: one token per 750 pixels, at most 1,600.
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
    """One message for the model. `role` is system, user, assistant or tool.

    The bytes of `images` are loaded when the message is sent. `text_tokens` is the length of
    `text`, if it is known. `calls` are the tool calls of an assistant's message. `tool_call_id` is
    the call that a tool's message answers. `source` is the stored message, for receipts. `native`
    is an assistant's message in the provider's own format. It is sent back unchanged, because some
    models need parts of it that have no field here.
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
        """The text of the message, with placeholders for its images."""
        return "\n".join(filter(None, [self.text, *(image.placeholder for image in self.images)]))


@dataclass(frozen=True)
class PromptItem:
    """One item of a section, by kind, id and revision, for receipts and pages.

    If the prompt contains only some lines of an entry, `lines` are the indexes of these lines, and
    `of` is the number of all lines.
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
    """The share of the budget that is reserved for a section, and its maximum share."""

    floor: float = 0.0
    ceiling: float = 1.0


def share(*, floor: float = 0.0, ceiling: float = 1.0) -> Callable[[F], F]:
    """Return a decorator that sets a section function's share of the budget."""

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
        """All messages. The first system messages are joined: many models accept only one."""
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
        """Return the contents by id and revision, without text."""
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
