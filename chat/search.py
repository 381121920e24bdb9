"""Conversations found by words in their titles and in what was said in them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import Q, QuerySet
from django.db.models.functions import Left

from chat.models import Message, Role, Session
from chat.models.messages import FINAL

# Characters of a query, and the words of it that count.
LONGEST = 200
MOST_WORDS = 16
# PostgreSQL refuses to make a tsvector of more than a megabyte; a character takes up to 4 bytes.
# https://www.postgresql.org/docs/18/textsearch-limitations.html
SEARCHED_CHARACTERS = 200_000
WORDS = SearchVector(Left("text", SEARCHED_CHARACTERS), config="simple")
_MARKS = re.compile(r"[*`#>|]+|-{3,}|__+")
# Characters of an excerpt.
EXCERPT = 160


def containing(sessions: QuerySet[Session], query: str) -> QuerySet[Session]:
    """Those of `sessions` with `query` in their title, or all its words in one message that stands.

    The last word may be the beginning of one.
    """
    said = _messages(query).filter(session__in=sessions.order_by().values("pk"))
    return sessions.filter(Q(title__icontains=query.strip()) | Q(pk__in=said.values("session")))


def _messages(query: str) -> QuerySet[Message]:
    standing = Message.objects.filter(deleted_at=None, role__in=(Role.USER, Role.ASSISTANT))
    return saying(standing, query)


def saying(messages: QuerySet[Message], query: str) -> QuerySet[Message]:
    """Those of `messages` that are whole and have all the words of `query`; the last may be the
    beginning of one.
    """
    asked = SearchQuery(_tsquery(query), config="simple", search_type="raw")
    return messages.alias(words=WORDS).filter(words=asked, status__in=FINAL)


def _tsquery(query: str) -> str:
    """All of the words, the last of them as a prefix, quoted: PostgreSQL's parser splits them."""
    escaped = [word.replace("\\", "\\\\").replace("'", "''") for word in query.split()[:MOST_WORDS]]
    return " & ".join(f"'{word}'" for word in escaped) + ":*" if escaped else ""


@dataclass(frozen=True)
class Excerpt:
    """Where something was found: the place in its session, and the words around it."""

    seq: int
    text: str


def excerpts(sessions: Iterable[Session], query: str) -> dict[UUID, Excerpt]:
    """By session, the latest message in which `query` was found, cut to what is around it."""
    found = _messages(query).filter(session__in=[one.pk for one in sessions])
    latest = found.order_by("session", "-seq").distinct("session")
    return {
        session: Excerpt(seq, around(text, query))
        for session, seq, text in latest.values_list("session", "seq", "text")
    }


def pattern(query: str) -> re.Pattern[str]:
    """Matches each word of `query` where a word of the text begins with it."""
    words = re.findall(r"\w+", query)[:MOST_WORDS]
    alternatives = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    return re.compile(rf"\b(?:{alternatives})\w*" if words else r"(?!)", re.IGNORECASE)


def around(text: str, query: str) -> str:
    """About EXCERPT characters of `text` from shortly before the first word of `query` on, on one
    line and without what Markdown puts between words.
    """
    first = pattern(query).search(text)
    begin = max(0, first.start() - EXCERPT // 3) if first else 0
    piece = " ".join(_MARKS.sub(" ", text[begin : begin + EXCERPT]).split())
    return f"{'…' if begin else ''}{piece}{'…' if begin + EXCERPT < len(text) else ''}"
