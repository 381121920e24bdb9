"""Built-in tools with which models search files and read their pages while they answer."""

from collections.abc import Iterator
from typing import Annotated
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from pydantic import Field

from chat.prompt import quoting
from chat.prompt.builder import Turn
from chat.prompt.tools import ToolResult, model_tool
from chat.prompt.types import PromptItem
from memory.files import access
from memory.models import File, FilePassage, FileRevision, SourceType
from memory.prompt.files import has_files
from memory.prompt.sections import CLOSING
from memory.prompt.tools import (
    DATA_NOTICE,
    MAX_RANKED,
    MAX_RESULTS,
    NO_ROOM,
    Query,
    no_results,
    reading_scope,
)
from memory.recall import pack_into_budget, recall
from projects.core import token_counting
from projects.core.errors import NotFoundError

NOT_READABLE = "There is no such file, or it may not be read here."
READ_ON = "To read on in the file, call read_file with passage {} and without pages.\n"
FileId = Annotated[UUID, Field(description="The id of a file, from search_files.")]
Pages = Annotated[
    str, Field(max_length=100, description="Pages such as 3 or 3-5. Default: the first ones.")
]
PassageNumber = Annotated[
    int, Field(ge=1, le=2**31 - 1, description="The number of the first passage to return.")
]


@model_tool(_("Searched the files"), has_files)
def search_files(turn: Turn, query: Query) -> ToolResult:
    """Search the files of this project. Returns passages with the name of the file and the page to
    cite, and with the id of the file and the number of the passage for read_file.
    """
    scope = reading_scope(turn, source_types=(SourceType.FILE,), files_of=turn.session.pk)
    found = recall(scope, query, limit=MAX_RANKED)
    results = [it for it in found if it.id not in turn.shown_ids]
    documents = dict(
        FileRevision.objects.filter(
            project=turn.project, pk__in={it.source for it in results}
        ).values_list("pk", "document")
    )
    lines = [
        # Begins with a bracket, which quoting escapes at the beginning of a line of the text.
        f"[file {documents.get(it.source)}, passage {it.first_seq}] "
        f"{quoting.quote_on_one_line(it.speaker)}: {quoting.quote(it.text)}\n"
        for it in results
    ]
    opening = f"Passages, best first. {DATA_NOTICE}"
    room = turn.budget - token_counting.count(opening + CLOSING)
    packed = pack_into_budget(map(token_counting.count, lines), room, MAX_RESULTS)
    if not packed:
        return no_results(found, results)
    items = (
        PromptItem("file", results[index].id, 1, results[index].tokens, results[index].speaker)
        for index in packed
    )
    return ToolResult(opening + "".join(lines[index] for index in packed) + CLOSING, tuple(items))


@model_tool(_("Read in a file"), has_files)
def read_file(turn: Turn, id: FileId, pages: Pages = "", passage: PassageNumber = 1) -> ToolResult:
    """Read pages of a file of this project, word for word, or a long text from a passage on."""
    reading_scope(turn)
    here = Q(session=None) | Q(session=turn.session.pk)
    rows = File.objects.filter(here, project=turn.project, pk=id)
    document = access.with_versions(rows, turn.project).first()
    revision = access.readable(document) if document else None
    if document is None or revision is None:
        raise NotFoundError(NOT_READABLE)
    opening = f"Pages of {quoting.quote_on_one_line(document.name)}. {DATA_NOTICE}"
    # No number of a passage is longer than that of the last one.
    closing = CLOSING + READ_ON.format(revision.passage_count)
    room = turn.budget - token_counting.count(opening + closing)
    lines, items, last, is_full = [], [], 0, False
    for label, row in _passages(revision, pages, passage):
        line = f"{label}{quoting.quote(row.text.strip())}\n"
        size = token_counting.count(line)
        if is_full := size > room:
            break
        room -= size
        lines.append(line)
        items.append(PromptItem("file", row.pk, 1, size, row.label))
        last = row.number
    if not lines:
        return ToolResult(NO_ROOM if is_full else "The file has no text at this place.")
    closing = CLOSING
    if last < revision.passage_count:
        closing += READ_ON.format(last + 1)
    return ToolResult(opening + "".join(lines) + closing, tuple(items))


def _passages(revision: FileRevision, pages: str, number: int) -> Iterator[tuple[str, FilePassage]]:
    """Yield the passages of the pages from `number` on. The first passage of a page has the label
    of the page.
    """
    for page in access.pages_of(revision, pages, passage=number):
        for index, passage in enumerate(page.passages):
            is_first = index == 0 and page.label
            yield f"{quoting.quote_on_one_line(page.label)}:\n" if is_first else "", passage
