"""The source of a fact as a short text, for prompts and pages.

The text never contains the title of a private chat or the name of a speaker in it.
"""

from collections.abc import Mapping
from typing import Any

from django.db.models import Case, JSONField, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import JSONObject

from chat.models import Visibility, open_label
from chat.prompt.history import speaker_name
from memory.models import EntryStatus, FactSource

# The maximum length of a name or title, in characters. Longer ones are cut.
MAX_NAME_CHARS = 40

_IN_SHARED_SESSION = Q(session__visibility=Visibility.PROJECT)


def source_subquery() -> Subquery:
    """Return a subquery for facts: the first source of each fact as JSON, NULL without a source.

    Sources in shared chats are preferred to sources in private chats.
    """
    sources = FactSource.objects.filter(
        project=OuterRef("project"), fact=OuterRef("pk"), entry__withheld=False
    ).exclude(entry__state=EntryStatus.HIDDEN)
    shared_first = sources.annotate(
        is_private=Case(When(_IN_SHARED_SESSION, then=Value(0)), default=Value(1))
    ).order_by("is_private", "valid_from", "pk")
    columns = {
        "visibility": "session__visibility",
        "title": "session__title",
        "role": "message__role",
        "author_name": "message__author_name",
        "username": "message__author__username",
        "first_name": "message__author__first_name",
        "last_name": "message__author__last_name",
    }
    row = shared_first.values(source_json=JSONObject(**columns))
    return Subquery(row[:1], output_field=JSONField())


def attribution(
    source: Mapping[str, Any] | None, by_hand: bool = False, version: int = 1, written_by: str = ""
) -> list[str]:
    """Return the speaker and the chat of `source`, then who entered or changed the fact by hand.

    The names are not quoted yet.
    """
    names = []
    if source:
        speaker = dict(source)
        visibility, title = speaker.pop("visibility"), speaker.pop("title")
        if visibility == Visibility.PROJECT:
            names.append(_short(speaker_name(**speaker)))
        names.append(_short(open_label(title, visibility)))
    if by_hand:
        names.append(f"by hand, {_short(written_by)}")
    elif version > 1:
        names.append(f"changed by {_short(written_by)}")
    return names


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME_CHARS else f"{name[: MAX_NAME_CHARS - 1]}…"
