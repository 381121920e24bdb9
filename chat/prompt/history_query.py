"""The query for a conversation's history, which reads only the columns that prompts need."""

import json
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import CharField, Count, Exists, F, OuterRef, QuerySet, Value
from django.db.models.functions import Cast, Concat

from chat.models import FINAL, Attachment, Message, Reaction, Role, Session
from chat.prompt.types import ToolCall, load_tool_calls
from projects.core.db.prepared_queries import PreparedQuery


def is_promptable(role: str, tool_call_id: str) -> bool:
    """Return whether a message of that role may be in a prompt; a tool's only as an answer."""
    return role in (Role.USER, Role.ASSISTANT) or (role == Role.TOOL and bool(tool_call_id))


def speaker_name(
    role: str,
    author_name: str,
    username: str | None,
    first_name: str | None,
    last_name: str | None,
) -> str:
    """Return `Message.speaker` from columns. Those of the author are None if there is none."""
    full_name = f"{first_name or ''} {last_name or ''}".strip()
    anonymous = "Assistant" if role == Role.ASSISTANT else "Someone"
    return author_name or full_name or username or anonymous


class HistoryMessage(NamedTuple):
    """The columns of a message that prompts need. `tool_calls` is JSON text.

    `reaction_counts` has a text for each emoji: the count, a space, the emoji.
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
    has_images: bool
    reaction_counts: list[str]

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def counts(self) -> bool:
        """Whether it may be in a window."""
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
