"""Search for conversations by words in their titles and messages."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.contrib.postgres.search import SearchQuery
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from chat.models import Message, Role, Session
from chat.models.messages import FINAL, MAX_SEARCHED_CHARS, SEARCHED_RUN, TEXT_VECTOR

MAX_QUERY_CHARS = 200
MAX_QUERY_WORDS = 16
EXCERPT_CHARS = 160
# The maximum number of chats whose tags are listed.
MAX_TAGGED = 500
_RUN = re.compile(SEARCHED_RUN)
_MARKDOWN = re.compile(r"[*`#>|]+|-{3,}|__+")


@dataclass(frozen=True)
class SessionExcerpt:
    """The place in a session where a query was found, and the text around it."""

    seq: int
    text: str


def search_sessions(sessions: QuerySet[Session], query: str) -> QuerySet[Session]:
    """Filter by `query` in the title, or all its words in one visible message.

    The last word may be a prefix. `query` may also be a tag. Its case does not matter.
    """
    messages = _search_visible(query).filter(session__in=sessions.order_by().values("pk"))
    in_messages = Q(pk__in=messages.values("session"))
    tag = json.dumps(query.strip().removeprefix("#"), ensure_ascii=False)
    found = Q(title__icontains=query.strip()) | Q(tag_list__icontains=tag) | in_messages
    return sessions.alias(tag_list=Cast("tags", TextField())).filter(found)


def used_tags(sessions: QuerySet[Session]) -> list[str]:
    """Return the tags of the newest MAX_TAGGED tagged sessions, in alphabetical order."""
    tagged = sessions.exclude(tags=[]).order_by("-last_activity_at", "-id")
    lists = tagged.values_list("tags", flat=True)[:MAX_TAGGED]
    return sorted({tag for tags in lists for tag in tags}, key=str.casefold)


def _search_visible(query: str) -> QuerySet[Message]:
    visible = Message.objects.filter(deleted_at=None, role__in=(Role.USER, Role.ASSISTANT))
    return search_messages(visible, query)


def search_messages(messages: QuerySet[Message], query: str) -> QuerySet[Message]:
    """Filter by final messages with all words of `query`; the last word may be a prefix."""
    # As in TEXT_VECTOR: PostgreSQL would parse "<" as the start of a tag, and long runs are split.
    words = _RUN.sub(r"\g<0> ", query.replace("<", " ")).split()[:MAX_QUERY_WORDS]
    # Quoted, so that PostgreSQL splits them further, as in the index.
    words = [word.replace("\\", "\\\\").replace("'", "''") for word in words]
    tsquery = " & ".join(f"'{word}'" for word in words) + ":*" if words else ""
    matches = SearchQuery(tsquery, config="simple", search_type="raw")
    return messages.alias(words=TEXT_VECTOR).filter(words=matches, status__in=FINAL)


def excerpts(sessions: Iterable[Session], query: str) -> dict[UUID, SessionExcerpt]:
    """Return an excerpt of the latest matching message by session."""
    matches = _search_visible(query).filter(session__in=[session.pk for session in sessions])
    latest = matches.order_by("session", "-seq").distinct("session")
    return {
        session: SessionExcerpt(seq, excerpt_around(text, query))
        for session, seq, text in latest.values_list("session", "seq", "text")
    }


def word_pattern(query: str) -> re.Pattern[str]:
    """Return a pattern for words that begin with a word of `query`."""
    words = re.findall(r"\w+", query[:MAX_QUERY_CHARS])[:MAX_QUERY_WORDS]
    alternatives = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    return re.compile(rf"\b(?:{alternatives})\w*" if words else r"(?!)", re.IGNORECASE)


def excerpt_around(text: str, query: str) -> str:
    """Return about EXCERPT_CHARS of `text` around the first match, on one line, no Markdown."""
    match = word_pattern(query).search(text, 0, MAX_SEARCHED_CHARS)
    start = max(0, match.start() - EXCERPT_CHARS // 3) if match else 0
    end = start + EXCERPT_CHARS
    excerpt = " ".join(_MARKDOWN.sub(" ", text[start:end]).split())
    return f"{'…' if start else ''}{excerpt}{'…' if end < len(text) else ''}"
