"""Where a fact comes from, and who said it: in few words, for prompts and for readers of them.

Of a private chat neither its title nor who speaks in it is told, to nobody.
"""

from collections.abc import Mapping
from typing import Any

from django.db.models import Case, JSONField, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import JSONObject

from chat.models import Visibility, open_label
from chat.spoken import speaker_of
from memory.models import FactSource, State

# Characters of a name or a title: a long one is not to take the room of other facts.
LONGEST = 40

_SHARED = Q(session__visibility=Visibility.PROJECT)


def source() -> Subquery:
    """For queries of facts: the first message that tells one, of a chat that all may read if there
    is any, as JSON; None for a fact that only somebody gave by hand.
    """
    told = FactSource.objects.filter(
        project=OuterRef("project"), fact=OuterRef("pk"), entry__withheld=False
    ).exclude(entry__state=State.HIDDEN)
    shared_first = told.annotate(
        after=Case(When(_SHARED, then=Value(0)), default=Value(1))
    ).order_by("after", "valid_from", "pk")
    columns = {
        "visibility": "session__visibility",
        "title": "session__title",
        "role": "message__role",
        "author_name": "message__author_name",
        "username": "message__author__username",
        "first_name": "message__author__first_name",
        "last_name": "message__author__last_name",
    }
    return Subquery(shared_first.values(told=JSONObject(**columns))[:1], output_field=JSONField())


def attribution(
    source: Mapping[str, Any] | None, by_hand: bool, version: int, written_by: str
) -> list[str]:
    """Of whom a fact is: who said it and the chat, as `source` found them; then who gave it by hand
    or changed it. The names as they are, to be quoted.
    """
    names = _of_chat(source) if source else []
    if by_hand:
        names.append(f"by hand, {_short(written_by)}")
    elif version > 1:
        names.append(f"changed by {_short(written_by)}")
    return names


def _of_chat(source: Mapping[str, Any]) -> list[str]:
    told = dict(source)
    visibility, title = told.pop("visibility"), told.pop("title")
    chat = _short(open_label(title, visibility))
    return [_short(speaker_of(**told)), chat] if visibility == Visibility.PROJECT else [chat]


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
