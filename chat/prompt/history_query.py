"""Messages as prompts read them: of the hundred in a window, only what stands in it."""

import json
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import CharField, Count, Exists, F, OuterRef, QuerySet, Value
from django.db.models.functions import Cast, Concat

from chat import tooling
from chat.compiled import Compiled
from chat.models import FINAL, Attachment, Message, Reaction, Role, Session
from chat.tooling import ToolCall


def may_be_told(role: str, tool_call_id: str) -> bool:
    """Whether a message of that role has a place in prompts: what a tool told only as an answer."""
    return role in (Role.USER, Role.ASSISTANT) or (role == Role.TOOL and bool(tool_call_id))


def speaker_of(
    role: str,
    author_name: str,
    username: str | None,
    first_name: str | None,
    last_name: str | None,
) -> str:
    """As Message's, from columns: those of its author are None where it has none."""
    full = f"{first_name or ''} {last_name or ''}".strip()
    someone = "Assistant" if role == Role.ASSISTANT else "Someone"
    return author_name or full or username or someone


class Spoken(NamedTuple):
    """A message in few words. `given` are the reactions to it: how often, a space, the emoji;
    `tool_calls` are JSON.
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
    pictured: bool
    given: list[str]

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def counts(self) -> bool:
        """Whether it may stand in a window."""
        said = self.text or self.pictured or self.calls or self.tool_call_id
        stands = self.is_final and self.deleted_at is None
        return bool(said) and stands and may_be_told(self.role, self.tool_call_id)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return () if self.tool_calls == "[]" else tooling.read(json.loads(self.tool_calls))

    @property
    def speaker(self) -> str:
        """As Message's."""
        return speaker_of(
            self.role, self.author_name, self.username, self.first_name, self.last_name
        )

    @property
    def reactions(self) -> dict[str, int]:
        """By emoji, how often."""
        return {emoji: int(times) for times, emoji in (one.split(" ", 1) for one in self.given)}


def path_to(session: Session, head: UUID | None, most: int) -> list[Spoken]:
    """The last `most` messages of the path that ends at `head`, oldest first, in one query."""
    return [Spoken._make(row) for row in _path(session.project_id, session.pk, head, most)]


def _rows(project: UUID, session: UUID, head: UUID, most: int) -> QuerySet:
    shown = {"project": OuterRef("project"), "message": OuterRef("pk")}
    counted = Reaction.objects.filter(**shown).order_by().values("emoji")
    pair = Concat(Cast(Count("pk"), CharField()), Value(" "), F("emoji"))
    rows = Message.objects.path_to(Session(pk=session, project_id=project), head, most).annotate(
        pictured=Exists(Attachment.objects.filter(**shown)),
        given=ArraySubquery(counted.annotate(pair=pair).values("pair")),
    )
    names = {name: f"author__{name}" for name in ("username", "first_name", "last_name")}
    return rows.values_list(*(names.get(name, name) for name in Spoken._fields))


_path = Compiled(_rows, UUID, UUID, UUID, int)
