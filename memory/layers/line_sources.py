"""The sources of the lines of entries, limited to messages and files that the reader may open."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chat.links import source_url
from chat.models import Message
from chat.permissions import sessions_for
from memory.files.access import passage_url
from memory.files.passages import place
from memory.layers.lines import Line
from memory.models import File, FilePassage
from projects.models import Project

# The maximum number of links for one line. A line of a digest may have dozens of sources, which the
# page of the entry shows in full.
MAX_LINKS = 5


@dataclass(frozen=True)
class LinkedLine:
    """A line with source messages, and passages of files as pairs (URL, place), that the reader may
    open. `others` is the number of its other sources.
    """

    line: Line
    messages: Sequence[Message]
    passages: Sequence[tuple[str, str]] = ()
    others: int = 0

    @property
    def links(self) -> list[tuple[str, Message]]:
        return [(source_url(message), message) for message in self.messages]


@dataclass(frozen=True)
class OpenSources:
    """The sources of some lines that a reader may open, by id."""

    messages: Mapping[UUID, Message]
    passages: Mapping[UUID, FilePassage]


def linked_lines(user: Any, project: Project, lines: Sequence[Line]) -> list[LinkedLine]:
    """Return `lines` with the sources that `user` may open. Takes at most two queries."""
    sources = open_sources(user, project, lines)
    return [link(line, sources) for line in lines]


def link(line: Line, sources: OpenSources) -> LinkedLine:
    """Return `line` with at most MAX_LINKS of its `sources` (from `open_sources`)."""
    messages = [sources.messages[pk] for pk in line.sources if pk in sources.messages][:MAX_LINKS]
    passages = [sources.passages[pk] for pk in line.sources if pk in sources.passages]
    links = [
        (passage_url(row.revision.project, row), _label(row, line.speaker))
        for row in passages[: MAX_LINKS - len(messages)]
    ]
    return LinkedLine(line, messages, links, len(line.sources) - len(messages) - len(links))


def _label(passage: FilePassage, speaker: str) -> str:
    """Return the place of the passage, or only its page if it is the `speaker` of the line."""
    full = place(passage.revision.document.name, passage.label)
    return passage.label if passage.label and speaker == full else full


def open_sources(user: Any, project: Project, lines: Sequence[Line]) -> OpenSources:
    """Return the source messages of `lines`, and the passages of files, that `user` may open."""
    messages = open_messages(user, project, lines)
    rest = {source for line in lines for source in line.sources} - messages.keys()
    if not rest or not project.has_files:
        return OpenSources(messages, {})
    documents = File.objects.visible_to(user).filter(project=project)
    rows = FilePassage.objects.filter(project=project, revision__document__in=documents)
    rows = rows.select_related("revision__document", "revision__project").defer("text")
    return OpenSources(messages, rows.in_bulk(list(rest)))


def open_messages(user: Any, project: Project, lines: Iterable[Line]) -> Mapping[UUID, Message]:
    """Return the source messages of `lines` that `user` may open, by id."""
    sources = {source for line in lines for source in line.sources}
    if not sources:
        return {}
    rows = Message.objects.filter(project=project, deleted_at=None)
    rows = rows.filter(session__in=sessions_for(user).filter(project=project))
    return rows.select_related("session__project", "author").defer("receipt").in_bulk(list(sources))
