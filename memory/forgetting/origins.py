"""Whose words, which chats and which imports a thing rests on: they can be forgotten as a whole."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef

from chat.models import Import, ImportedStretch, Message, Session
from memory.forgetting import facts, finding
from memory.forgetting.scope import Scope
from projects.models import Project

# Of each kind; who has more to go through begins with these.
MOST_LISTED = 50


@dataclass(frozen=True)
class Origins:
    """People with an account here, and chats, by name; and imports, the newest first."""

    people: list[Any] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    uploads: list[Import] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.people or self.sessions or self.uploads)


def origins(project: Project, scope: Scope) -> Origins:
    """Where what `scope` names (an entry, a fact or a message) comes from."""
    messages = _messages(project, scope)
    rows = Message.objects.filter(project=project, pk__in=messages, forgotten_at=None)
    people = get_user_model().objects.filter(pk__in=rows.exclude(author=None).values("author"))
    sessions = Session.objects.filter(project=project, pk__in=rows.values("session"))
    brought = rows.filter(
        session=OuterRef("session"), seq__gte=OuterRef("first_seq"), seq__lte=OuterRef("last_seq")
    )
    stretches = ImportedStretch.objects.filter(Exists(brought), project=project)
    uploads = project.imports.filter(pk__in=stretches.values("upload")).select_related("user")
    return Origins(
        list(people.order_by("username")[:MOST_LISTED]),
        list(sessions.order_by("title", "pk")[:MOST_LISTED]),
        list(uploads[:MOST_LISTED]),
    )


def _messages(project: Project, scope: Scope) -> Collection[UUID]:
    if scope.entry is not None:
        return finding.covered(project, finding.named_entries(project, scope))
    if scope.fact is not None:
        return facts.messages_of(project, scope.fact)
    return {scope.message} if scope.message is not None else ()
