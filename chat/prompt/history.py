"""Selects the messages and images of a conversation for a prompt.

Only `path_to` reads the database. All other functions are pure.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import CharField, Count, Exists, F, OuterRef, QuerySet, Value
from django.db.models.functions import Cast, Concat

from chat.models import FINAL, Attachment, Message, Reaction, Role, Session
from chat.prompt.types import PromptImage, PromptMessage, ToolCall, load_tool_calls
from projects.core.database import PreparedQuery

# The maximum number of images. With more, Anthropic rejects images wider or higher than 2,000 px.
# https://docs.claude.com/en/docs/build-with-claude/vision
MAX_IMAGES = 20


def fit(messages: Sequence[PromptMessage], limit: int, budget: int) -> list[PromptMessage]:
    """Return the newest of `messages`, oldest first: at most `limit` and at most `budget` tokens.

    Messages are never cut. If the budget leaves messages out, the window begins with a user's
    message, so that it contains no answer without its question.
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
    """Return the ids of the newest images: at most `limit`, with at most `budget` tokens."""
    chosen: set[UUID] = set()
    for image in newest_first:
        budget -= image.tokens
        if budget < 0 or len(chosen) >= limit:
            break
        chosen.add(image.id)
    return chosen


def drop_unpaired_calls(messages: Sequence[PromptMessage]) -> list[PromptMessage]:
    """Remove the tool calls of a message unless the next messages answer them all. Remove answers
    without a call.

    Providers reject both. If a message has no text, it is removed together with its calls.
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
    spoken = (
        message
        for message in messages
        if not message.tool_call_id and (message.text or not message.calls)
    )
    return [replace(message, calls=()) for message in spoken]


def is_promptable(role: str, tool_call_id: str) -> bool:
    """Return whether prompts contain messages of this role. A tool's message must answer a call."""
    return role in (Role.USER, Role.ASSISTANT) or (role == Role.TOOL and bool(tool_call_id))


def speaker_name(
    role: str, author_name: str, username: str | None, first_name: str | None, last_name: str | None
) -> str:
    """Return `Message.speaker` from columns. Without an author, the last three are None."""
    if role == Role.ASSISTANT:
        return author_name or "Assistant"
    full_name = f"{first_name or ''} {last_name or ''}".strip()
    return author_name or full_name or username or "Someone"


class HistoryMessage(NamedTuple):
    """The columns of a message that prompts contain. `tool_calls` is JSON.

    `reaction_counts` has a string for each emoji: the count, a space, and the emoji.
    """

    pk: UUID
    copied_from_id: UUID | None
    role: str
    author_name: str
    username: str | None
    first_name: str | None
    last_name: str | None
    text: str
    tokens: int
    tool_calls: str
    tool_call_id: str
    status: str
    version: int
    deleted_at: datetime | None
    hidden_at: datetime | None
    has_images: bool
    reaction_counts: list[str]

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def counts(self) -> bool:
        """True if the message takes a place in the history window."""
        has_content = self.text or self.has_images or self.calls or self.tool_call_id
        is_visible = self.is_final and self.deleted_at is None
        return bool(has_content) and is_visible and is_promptable(self.role, self.tool_call_id)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return () if self.tool_calls == "[]" else load_tool_calls(json.loads(self.tool_calls))

    @property
    def speaker(self) -> str:
        return speaker_name(
            self.role, self.author_name, self.username, self.first_name, self.last_name
        )

    @property
    def reactions(self) -> dict[str, int]:
        pairs = (pair.split(" ", 1) for pair in self.reaction_counts)
        return {emoji: int(count) for count, emoji in pairs}


def path_to(session: Session, head: UUID | None, limit: int) -> list[HistoryMessage]:
    """Return the last `limit` messages of the path that ends at `head`, oldest first."""
    rows = _prepared_path(session.project_id, session.pk, head, limit)
    return [HistoryMessage._make(row) for row in rows]


def _path(project: UUID, session: UUID, head: UUID, limit: int) -> QuerySet:
    of_message = {"project": OuterRef("project"), "message": OuterRef("pk")}
    by_emoji = Reaction.objects.filter(**of_message).order_by().values("emoji")
    pair = Concat(Cast(Count("pk"), CharField()), Value(" "), F("emoji"))
    rows = Message.objects.path_to(Session(pk=session, project_id=project), head, limit).annotate(
        has_images=Exists(Attachment.objects.filter(**of_message)),
        reaction_counts=ArraySubquery(by_emoji.annotate(pair=pair).values("pair")),
    )
    names = {name: f"author__{name}" for name in ("username", "first_name", "last_name")}
    return rows.values_list(*(names.get(name, name) for name in HistoryMessage._fields))


_prepared_path = PreparedQuery(_path, UUID, UUID, UUID, int)
