"""The people, chats and imports that an entry, a fact or a message comes from."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Exists

from chat.models import Import, ImportedStretch, Message, Session
from memory.forgetting import closure, facts
from memory.forgetting.scope import ForgetScope
from memory.layers.coverage import IN_RANGE
from projects.models import Project

# The maximum number of users, chats and imports. Others are shown once these are forgotten.
MAX_ORIGINS = 50


@dataclass(frozen=True)
class Origins:
    """The users and chats in order of name, and the imports, newest first."""

    people: list[Any] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    uploads: list[Import] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.people or self.sessions or self.uploads)


def find_origins(project: Project, scope: ForgetScope) -> Origins:
    """Return the users, chats and imports that can be forgotten to remove the source of `scope`.

    `scope` must name an entry, a fact or a message.
    """
    messages: Collection[UUID] = ()
    if scope.entry is not None:
        messages = closure.covered_messages(project, closure.named_entries(project, scope))
    elif scope.fact is not None:
        messages = facts.source_messages(project, scope.fact)
    elif scope.message is not None:
        messages = {scope.message}
    rows = Message.objects.filter(project=project, pk__in=messages, forgotten_at=None)
    people = get_user_model().objects.filter(pk__in=rows.exclude(author=None).values("author"))
    sessions = Session.objects.filter(project=project, pk__in=rows.values("session"))
    stretches = ImportedStretch.objects.filter(Exists(rows.filter(IN_RANGE)), project=project)
    uploads = project.imports.filter(pk__in=stretches.values("upload")).select_related("user")
    return Origins(
        list(people.order_by("username")[:MAX_ORIGINS]),
        list(sessions.order_by("title", "pk")[:MAX_ORIGINS]),
        list(uploads[:MAX_ORIGINS]),
    )
