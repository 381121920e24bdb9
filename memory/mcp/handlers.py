"""Handlers of the MCP tools. Notes, summaries, facts and messages share one id space."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet, Value
from django.http import Http404
from django.urls import reverse

from chat.conversations import edits, notes
from chat.links import message_url
from chat.models import Message
from chat.permissions import message_for_changing, sessions_for
from memory import facts
from memory.facts import facts_for
from memory.forgetting import service
from memory.forgetting.permissions import may_forget
from memory.mcp.schemas import (
    ForgottenMemory,
    MemoryExcerpt,
    MemoryItem,
    MemoryKind,
    MemoryPage,
    MemorySearchResults,
    ProjectContext,
    RemovedMemory,
)
from memory.models import Entry, Fact, ModerationReason, SourceType
from memory.moderation.actions import ModerationAction, ModerationRequest, apply_action
from memory.permissions import entries_for, objection_of
from memory.prompt.context_text import build_context_text
from memory.recall import TRANSCRIPT_SOURCES, RecallResult, RecallScope, recall
from projects import permissions
from projects.core.errors import ConflictError, InvalidInputError, NotAllowedError
from projects.models import Membership, Project, Token

PAGE_SIZE = 50

Row = Message | Entry | Fact


@dataclass(frozen=True)
class Caller:
    """The member of the token's project. `absolute` turns a path into a URL."""

    member: Membership
    token: Token
    absolute: Callable[[str], str]

    @property
    def project(self) -> Project:
        return self.member.project

    @property
    def user(self) -> Any:
        return self.member.user

    def url_of(self, row: Row) -> str:
        if isinstance(row, Message):
            return self.absolute(message_url(row))
        return self.page_url("fact" if isinstance(row, Fact) else "entry", row.pk)

    def page_url(self, name: str, pk: Any) -> str:
        return self.absolute(reverse(name, args=[self.project.slug, pk]))


def add(caller: Caller, text: str) -> MemoryItem:
    """Create a note."""
    project = permissions.project_for_writing(caller.user, caller.project.slug, caller.token)
    return _item(caller, notes.add_note(project, caller.user, text))


def search(caller: Caller, query: str, limit: int) -> MemorySearchResults:
    """Return the best `limit` excerpts and summaries for `query`."""
    sources = (*TRANSCRIPT_SOURCES, SourceType.ENTRY)
    scope = RecallScope(caller.project, caller.user, source_types=sources)
    results = recall(scope, query, limit=limit)
    messages = _first_messages(caller, results)
    excerpts = []
    for result in results:
        fields: dict[str, Any] = {
            "text": result.text,
            "speaker": result.speaker,
            "occurred_at": result.occurred_at,
            "score": result.score,
        }
        if result.source_type == SourceType.ENTRY:
            fields |= {"memory_id": result.source, "kind": MemoryKind.SUMMARY}
            url = caller.page_url("entry", result.source)
        elif message := messages.get((result.session, result.first_seq)):
            fields |= {"memory_id": message.pk, "kind": _kind_of(message)}
            fields |= {name: getattr(result, name) for name in ("session", "first_seq", "last_seq")}
            url = caller.url_of(message)
        else:
            continue
        excerpts.append(MemoryExcerpt(url=url, **fields))
    return MemorySearchResults(results=excerpts)


def _first_messages(
    caller: Caller, results: Iterable[RecallResult]
) -> dict[tuple[UUID | None, int], Message]:
    """Return the first message of each excerpt, by session and number."""
    places = [
        Q(session=result.session, seq=result.first_seq)
        for result in results
        if result.session is not None and result.source_type != SourceType.ENTRY
    ]
    if not places:
        return {}
    rows = Message.objects.filter(reduce(or_, places), project=caller.project)
    rows = rows.select_related("author", "session__project")
    return {(message.session_id, message.seq): message for message in rows}


def page(caller: Caller, number: int) -> MemoryPage:
    """Return the notes, summaries and facts that the caller may read, newest first."""
    first = (number - 1) * PAGE_SIZE
    own_notes = notes.notes_for(caller.user, caller.project, caller.token)
    querysets: list[QuerySet[Any]] = [
        own_notes.select_related("author", "session__project"),
        _entries(caller),
        _facts(caller),
    ]
    ids = [
        rows.order_by().annotate(kind=Value(index)).values_list("pk", "kind")
        for index, rows in enumerate(querysets)
    ]
    newest = ids[0].union(*ids[1:], all=True).order_by("-id")
    window = list(newest[first : first + PAGE_SIZE + 1])
    items: dict[UUID, MemoryItem] = {}
    for index, rows in enumerate(querysets):
        if wanted := [pk for pk, kind in window[:PAGE_SIZE] if kind == index]:
            items |= {row.pk: _item(caller, row) for row in rows.filter(pk__in=wanted)}
    memories = [items[pk] for pk, _kind in window[:PAGE_SIZE] if pk in items]
    next_page = number + 1 if len(window) > PAGE_SIZE else None
    return MemoryPage(memories=memories, page=number, next_page=next_page)


def get(caller: Caller, memory_id: UUID) -> MemoryItem:
    return _item(caller, _find(caller, memory_id))


def update(caller: Caller, memory_id: UUID, text: str) -> MemoryItem:
    """Replace the text of a note, a message or a summary, and keep the previous one."""
    row = _find(caller, memory_id)
    if isinstance(row, Fact):
        raise InvalidInputError("A fact has parts: change it in the page, or by the REST API.")
    if isinstance(row, Entry):
        _moderate(caller, row, ModerationRequest(ModerationAction.EDIT, caller.user, text=text))
    else:
        message = message_for_changing(caller.user, row.pk, caller.token)
        if message.session.is_notes:
            notes.edit_note(message, text, caller.user)
        else:
            edits.edit(message, notes.validate_note(text), caller.user)
    return get(caller, memory_id)


def delete(caller: Caller, memory_id: UUID) -> RemovedMemory:
    """Remove a memory from memory, prompts and search. Moderators can restore it."""
    row = _find(caller, memory_id)
    if isinstance(row, Fact):
        if not facts.may_decide(caller.member, row):
            raise NotAllowedError("An owner decides on it.")
        facts.hide(row, caller.user)
    elif isinstance(row, Entry):
        _moderate(caller, row, ModerationRequest(ModerationAction.HIDE, caller.user))
    else:
        edits.delete(message_for_changing(caller.user, row.pk, caller.token))
    return RemovedMemory(memory_id=memory_id, kind=_kind_of(row))


def forget(caller: Caller, memory_id: UUID) -> ForgottenMemory:
    """Forget a memory for good, even if it was deleted before."""
    row = _find(caller, memory_id, deleted=True)
    # ForgetScope has a field for each of the three models.
    named: dict[str, Any] = {str(row._meta.model_name): row.pk}
    scope = service.ForgetScope(**named)
    if not may_forget(caller.member, scope):
        raise NotAllowedError("Only owners of the project have this forgotten.")
    receipt = service.forget(caller.project, scope, caller.user, ModerationReason.OTHER)
    return ForgottenMemory(
        memory_id=memory_id,
        removed=dict(receipt.removed),
        awaiting_rewrite=receipt.awaiting_rewrite,
        awaiting_files=receipt.awaiting_files,
        url=caller.page_url("memory-receipt", receipt.id),
    )


def context(caller: Caller, query: str, token_budget: int) -> ProjectContext:
    """Return the memory sections of a prompt for `query`."""
    result = build_context_text(caller.project, caller.user, query, token_budget)
    sections = {section.name: section.tokens for section in result.sections}
    return ProjectContext(text=result.text, tokens=result.tokens, sections=sections)


def _moderate(caller: Caller, entry: Entry, request: ModerationRequest) -> None:
    outcome = apply_action(request, [entry], objection_of(caller.member))
    for _entry, reason in outcome.refused:
        raise ConflictError(reason)


def _entries(caller: Caller) -> QuerySet[Entry]:
    return entries_for(caller.member).in_layers().filter(withheld=False)


def _facts(caller: Caller) -> QuerySet[Fact]:
    return facts_for(caller.member).supported().current()


def _find(caller: Caller, memory_id: UUID, deleted: bool = False) -> Row:
    """Return the row with this id. Raises Http404 if it is missing or not for the caller.

    `deleted` includes rows that were deleted and not forgotten.
    """
    sessions = sessions_for(caller.user, caller.token).filter(project=caller.project)
    messages = Message.objects.filter(
        project=caller.project, session__in=sessions.order_by().values("pk"), forgotten_at=None
    ).select_related("author", "session__project")
    querysets: tuple[QuerySet[Any], ...]
    if deleted:
        querysets = (messages, entries_for(caller.member), facts_for(caller.member).current())
    else:
        querysets = (messages.filter(deleted_at=None), _entries(caller), _facts(caller))
    for rows in querysets:
        if row := rows.filter(pk=memory_id).first():
            return row
    raise Http404


def _kind_of(row: Row) -> MemoryKind:
    if isinstance(row, Entry):
        return MemoryKind.SUMMARY
    if isinstance(row, Fact):
        return MemoryKind.FACT
    return MemoryKind.NOTE if row.session.is_notes else MemoryKind.MESSAGE


def _item(caller: Caller, row: Row) -> MemoryItem:
    fields: dict[str, Any]
    if isinstance(row, Entry):
        fields = {"text": row.summary, "label": row.label, "occurred_at": row.last_source_at}
    elif isinstance(row, Fact):
        fields = {"text": row.text, "label": row.written_by, "occurred_at": row.valid_from}
    else:
        fields = {"text": row.text, "label": row.speaker, "occurred_at": row.created_at}
    url = caller.url_of(row)
    return MemoryItem(memory_id=row.pk, kind=_kind_of(row), url=url, **fields)
