"""The source messages of the lines of entries, limited to messages that the reader may open."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chat.links import source_url
from chat.models import Message
from chat.permissions import sessions_for
from memory.layers.lines import Line
from projects.models import Project

# The maximum number of links for one line. A line of a digest may have dozens of sources, which the
# page of the entry shows in full.
MAX_LINKS = 5


@dataclass(frozen=True)
class LinkedLine:
    """A line with source messages that the reader may open, and the number of its `others`."""

    line: Line
    messages: Sequence[Message]
    others: int = 0

    @property
    def links(self) -> list[tuple[str, Message]]:
        return [(source_url(message), message) for message in self.messages]


def linked_lines(user: Any, project: Project, lines: Sequence[Line]) -> list[LinkedLine]:
    """Return `lines` with the source messages that `user` may open. Takes one query."""
    messages = open_messages(user, project, lines)
    return [link(line, messages) for line in lines]


def link(line: Line, messages: Mapping[UUID, Message]) -> LinkedLine:
    """Return `line` with at most MAX_LINKS of its sources in `messages` (from `open_messages`)."""
    found = [messages[source] for source in line.sources if source in messages][:MAX_LINKS]
    return LinkedLine(line, found, len(line.sources) - len(found))


def open_messages(user: Any, project: Project, lines: Iterable[Line]) -> Mapping[UUID, Message]:
    """Return the source messages of `lines` that `user` may open, by id."""
    sources = {source for line in lines for source in line.sources}
    if not sources:
        return {}
    rows = Message.objects.filter(project=project, deleted_at=None)
    rows = rows.filter(session__in=sessions_for(user).filter(project=project))
    return rows.select_related("session__project", "author").defer("receipt").in_bulk(list(sources))
