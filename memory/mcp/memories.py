"""What a program may ask and tell of a project's memory: notes, summaries, facts and excerpts,
each known by one id.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet, Value
from django.http import Http404
from django.urls import reverse

from chat import changes, notes
from chat.access import message_for_changing, sessions_for
from chat.models import Message
from chat.pages import at
from memory import facts, forgetting, moderation
from memory.access import entries_for, objection_of
from memory.briefing import brief
from memory.facts import facts_for
from memory.forgetting.rights import may_forget
from memory.mcp.answers import Brief, Excerpt, Kind, Memory, Page, Receipt, Removed
from memory.models import Entry, Fact, Reason, SourceType
from memory.moderation import Act, Wish
from memory.recall import SAID, Result, Scope, recall
from projects import access
from projects.models import Membership, Project, Token

PAGE = 50


class Refused(Exception):
    """What is not done; the text says why."""


@dataclass(frozen=True)
class Caller:
    """Who asks: a member of the project that their token opens. `absolute` makes a page's path the
    address that they can open.
    """

    member: Membership
    token: Token
    absolute: Callable[[str], str]

    @property
    def project(self) -> Project:
        return self.member.project

    @property
    def user(self) -> Any:
        return self.member.user


def add(caller: Caller, text: str) -> Memory:
    """Writes down a note."""
    project = access.project_for_writing(caller.user, caller.project.slug, caller.token)
    return _of_message(caller, notes.add(project, caller.user, text))


def search(caller: Caller, query: str, limit: int) -> list[Excerpt]:
    """What answers `query` best, the best first, at most `limit`: excerpts and summaries."""
    scope = Scope(caller.project, caller.user, source_types=(*SAID, SourceType.ENTRY))
    results = recall(scope, query, limit=limit)
    said: dict[tuple[UUID | None, int], Message] = {
        (one.session_id, one.seq): one for one in _messages(caller, results)
    }
    found = []
    for one in results:
        told: dict[str, Any] = {
            "text": one.text,
            "speaker": one.speaker,
            "occurred_at": one.occurred_at,
            "score": one.score,
        }
        if one.source_type == SourceType.ENTRY:
            url = caller.absolute(_page(caller, one.source))
            found.append(Excerpt(memory_id=one.source, kind=Kind.SUMMARY, url=url, **told))
        elif message := said.get((one.session, one.first_seq)):
            told |= {name: getattr(one, name) for name in ("session", "first_seq", "last_seq")}
            url = caller.absolute(at(message))
            found.append(Excerpt(memory_id=message.pk, kind=_kind_of(message), url=url, **told))
    return found


def _messages(caller: Caller, results: Iterable[Result]) -> Sequence[Message]:
    """The first messages of what was said, with their sessions."""
    places = [
        Q(session=one.session, seq=one.first_seq)
        for one in results
        if one.session is not None and one.source_type != SourceType.ENTRY
    ]
    if not places:
        return []
    rows = Message.objects.filter(reduce(or_, places), project=caller.project)
    return list(rows.select_related("author", "session__project"))


def page(caller: Caller, number: int) -> Page:
    """The notes, summaries and facts that the caller may read, the newest first."""
    first = (number - 1) * PAGE
    kinds: list[QuerySet[Any]] = [_notes(caller), _entries(caller), _facts(caller)]
    ids = [
        rows.order_by().annotate(kind=Value(place)).values_list("pk", "kind")
        for place, rows in enumerate(kinds)
    ]
    rows = list(ids[0].union(*ids[1:], all=True).order_by("-id")[first : first + PAGE + 1])
    shown = rows[:PAGE]
    made: dict[UUID, Memory] = {}
    for place, of_kind in enumerate(kinds):
        wanted = [pk for pk, kind in shown if kind == place]
        if wanted:
            made |= {one.pk: _of(caller, one) for one in of_kind.filter(pk__in=wanted)}
    memories = [made[pk] for pk, _kind in shown if pk in made]
    return Page(memories=memories, page=number, next_page=number + 1 if rows[PAGE:] else None)


def get(caller: Caller, memory_id: UUID) -> Memory:
    return _of(caller, _find(caller, memory_id))


def update(caller: Caller, memory_id: UUID, text: str) -> Memory:
    """Gives a note, a message or a summary another text; the one before is kept beside it."""
    found = _find(caller, memory_id)
    if isinstance(found, Fact):
        raise Refused("A fact has parts: change it in the page, or by the REST API.")
    if isinstance(found, Entry):
        _decide(caller, found, Wish(Act.EDIT, caller.user, text=text))
    else:
        message = message_for_changing(caller.user, found.pk, caller.token)
        if message.session.is_notes:
            notes.change(message, text, caller.user)
        else:
            changes.edit(message, notes.checked(text), caller.user)
    return get(caller, memory_id)


def delete(caller: Caller, memory_id: UUID) -> Removed:
    """Takes it out of memory, prompts and search. The record keeps what moderators can bring back,
    and what was said.
    """
    found = _find(caller, memory_id)
    if isinstance(found, Fact):
        if not facts.may_decide(caller.member, found):
            raise PermissionDenied("An owner decides on it.")
        facts.hide(found, caller.user)
    elif isinstance(found, Entry):
        _decide(caller, found, Wish(Act.HIDE, caller.user))
    else:
        changes.delete(message_for_changing(caller.user, found.pk, caller.token))
    return Removed(memory_id=memory_id, kind=_kind_of(found))


def forget(caller: Caller, memory_id: UUID) -> Receipt:
    """Forgets it for good, with all that was made of it, also what was deleted before."""
    found = _find(caller, memory_id, deleted=True)
    if isinstance(found, Entry):
        scope = forgetting.Scope(entry=found.pk)
    elif isinstance(found, Fact):
        scope = forgetting.Scope(fact=found.pk)
    else:
        scope = forgetting.Scope(message=found.pk)
    if not may_forget(caller.member, scope):
        raise PermissionDenied("Only owners of the project have this forgotten.")
    done = forgetting.forget(caller.project, scope, caller.user, Reason.OTHER)
    return Receipt(
        memory_id=memory_id,
        removed=dict(done.removed),
        awaiting_rewrite=done.awaiting_rewrite,
        awaiting_files=done.awaiting_files,
        url=caller.absolute(reverse("memory-receipt", args=[caller.project.slug, done.id])),
    )


def context(caller: Caller, query: str, token_budget: int) -> Brief:
    """What stands before a model that is asked `query` in this project."""
    told = brief(caller.project, caller.user, query, token_budget)
    return Brief(
        text=told.text, tokens=told.tokens, sections={one.name: one.tokens for one in told.sections}
    )


def _decide(caller: Caller, entry: Entry, wish: Wish) -> None:
    outcome = moderation.carry_out(wish, [entry], objection_of(caller.member))
    for _entry, reason in outcome.refused:
        raise Refused(reason)


def _notes(caller: Caller) -> QuerySet[Message]:
    own = notes.notes_for(caller.user, caller.project, caller.token)
    return own.select_related("author", "session__project")


def _entries(caller: Caller) -> QuerySet[Entry]:
    return entries_for(caller.member).in_the_layers().filter(withheld=False)


def _facts(caller: Caller) -> QuerySet[Fact]:
    return facts_for(caller.member).standing().current()


def _find(caller: Caller, memory_id: UUID, deleted: bool = False) -> Message | Entry | Fact:
    """With `deleted`, also what was deleted and not forgotten. Raises Http404 for what is not there
    or not for the caller.
    """
    sessions = sessions_for(caller.user, caller.token).filter(project=caller.project)
    messages = Message.objects.filter(
        project=caller.project, session__in=sessions.order_by().values("pk"), forgotten_at=None
    ).select_related("author", "session__project")
    kinds: tuple[QuerySet[Any], ...]
    if deleted:
        kinds = (messages, entries_for(caller.member), facts_for(caller.member).current())
    else:
        kinds = (messages.filter(deleted_at=None), _entries(caller), _facts(caller))
    for rows in kinds:
        if found := rows.filter(pk=memory_id).first():
            return found
    raise Http404


def _kind_of(found: Message | Entry | Fact) -> Kind:
    if isinstance(found, Entry):
        return Kind.SUMMARY
    if isinstance(found, Fact):
        return Kind.FACT
    return Kind.NOTE if found.session.is_notes else Kind.MESSAGE


def _of(caller: Caller, found: Message | Entry | Fact) -> Memory:
    if isinstance(found, Entry):
        return _of_entry(caller, found)
    return _of_fact(caller, found) if isinstance(found, Fact) else _of_message(caller, found)


def _of_message(caller: Caller, message: Message) -> Memory:
    return Memory(
        memory_id=message.pk,
        kind=_kind_of(message),
        text=message.text,
        label=message.speaker,
        occurred_at=message.created_at,
        url=caller.absolute(at(message)),
    )


def _of_entry(caller: Caller, entry: Entry) -> Memory:
    return Memory(
        memory_id=entry.pk,
        kind=Kind.SUMMARY,
        text=entry.summary,
        label=entry.label,
        occurred_at=entry.last_source_at,
        url=caller.absolute(_page(caller, entry.pk)),
    )


def _of_fact(caller: Caller, fact: Fact) -> Memory:
    return Memory(
        memory_id=fact.pk,
        kind=Kind.FACT,
        text=fact.text,
        label=fact.written_by,
        occurred_at=fact.valid_from,
        url=caller.absolute(reverse("fact", args=[caller.project.slug, fact.pk])),
    )


def _page(caller: Caller, entry: UUID) -> str:
    return reverse("entry", args=[caller.project.slug, entry])
