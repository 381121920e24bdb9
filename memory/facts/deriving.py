"""Facts out of conversations: what the writing of a summary found, and what it found no more."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from chat.models import Message
from memory.facts.recording import Statement, commands, lock, new, same
from memory.models import (
    Entry,
    Fact,
    FactSource,
    Grave,
    Standing,
    State,
    Tombstone,
    Verb,
    Waiting,
)
from memory.models.activity import note
from memory.models.facts import folded
from projects.models import remove


@dataclass(frozen=True)
class Found:
    """A statement, and the message that tells it."""

    told: Statement
    message: Message


def take_in(
    entry: Entry,
    found: Sequence[Found],
    told_by: Sequence[Message],
    now: datetime,
    is_whole: bool,
    for_good: bool = False,
) -> None:
    """Records what the writing of `entry`, which is saved, found in its messages `told_by`.

    What it told before and tells no more is held no longer from `now` on, and with `for_good` never
    was; unless the look was not a whole one (`is_whole`), or somebody changed it by hand: then it
    stays as long as its message is as it was. Runs in the transaction in which the entry is kept.
    """
    # Locked first: what is forgotten meanwhile is buried by the time that is looked.
    lock(entry.project, (one.told.topic for one in found))
    found = _unburied(entry, found)
    new_ones: dict[UUID, str] = {}
    kept: set[UUID] = set()
    facts: set[UUID] = set()
    for one in found:
        fact, made = _recorded(entry, one, now)
        facts.add(fact.pk)
        kept.add(_source(entry, fact, one))
        if made:
            new_ones[fact.pk] = fact.state
    if facts:
        _settle(Fact.objects.filter(project=entry.project_id, pk__in=facts))
    gone = _untold(entry, kept, told_by, is_whole)
    untell(gone, at=None if for_good else now)
    _note(entry, new_ones)


def _recorded(entry: Entry, one: Found, now: datetime) -> tuple[Fact, bool]:
    fact = same(entry.project, one.told, one.message.pk)
    waits = _waits_because(entry, one.told)
    if fact is None:
        return new(entry.project, one.told, entry.written_by, waits, now), True
    if fact.state == Standing.PROPOSED and not waits:
        # Told again, where nobody has to look at it first.
        fact.state, fact.waits_because, fact.recorded_at = Standing.LIVE, "", now
        fact.save(update_fields=["state", "waits_because", "recorded_at"])
    return fact, False


def _waits_because(entry: Entry, told: Statement) -> str:
    if commands(told):
        return Waiting.INSTRUCTIONS
    return entry.waits_because if entry.state == State.PROPOSED else ""


def _source(entry: Entry, fact: Fact, one: Found) -> UUID:
    source, _ = FactSource.objects.update_or_create(
        project=entry.project,
        fact=fact,
        message=one.message,
        defaults={
            "session_id": one.message.session_id,
            "entry": entry,
            "valid_from": one.told.valid_from,
            "confidence": one.told.confidence,
            "found_at": timezone.now(),
        },
    )
    return source.pk


def _untold(
    entry: Entry, kept: set[UUID], told_by: Sequence[Message], is_whole: bool
) -> QuerySet[FactSource]:
    """What `entry` told before, and tells no more."""
    stays = Q(message__in=told_by) & (
        Q(message__edited_at=None) | Q(message__edited_at__lt=F("found_at"))
    )
    if is_whole:
        stays &= Q(fact__by_hand=True) | Q(fact__version__gt=1)
    told = FactSource.objects.filter(project=entry.project_id, entry=entry)
    return told.filter(fact__retired_at=None).exclude(pk__in=kept).exclude(stays)


def untell(sources: QuerySet[FactSource], at: datetime | None = None) -> int:
    """Takes `sources`, which name their project, away, and returns how many facts went with them.

    A fact that is left with none, and that nobody gave by hand, goes; with `at` it only ceases to
    be held so, at that moment, and can still be asked for as it was. So do earlier versions that
    none of the sources left knew of.
    """
    found = list(sources.values_list("project", "pk", "fact"))
    if not found:
        return 0
    projects = {project for project, _, _ in found}
    gone = [(pk, fact) for _, pk, fact in found]
    here = Fact.objects.filter(project__in=projects)
    facts = _lock(here.filter(pk__in={fact for _, fact in gone}))
    left = FactSource.objects.filter(project=OuterRef("project"))
    left = left.exclude(pk__in=[pk for pk, _ in gone])
    rows = here.filter(pk__in=facts)
    bare = rows.filter(~Exists(left.filter(fact=OuterRef("pk"))), by_hand=False)
    if at is not None:
        retired = set(bare.values_list("pk", flat=True))
        bare.filter(retired_at=None).update(retired_at=at)
        gone = [(pk, fact) for pk, fact in gone if fact not in retired]
        removed = len(retired)
    else:
        removed = remove(bare)
    remove(FactSource.objects.filter(project__in=projects, pk__in=[pk for pk, _ in gone]))
    knew = FactSource.objects.filter(
        project=OuterRef("project"),
        fact=OuterRef("earlier_of"),
        found_at__lt=OuterRef("retired_at"),
    )
    remove(here.filter(~Exists(knew), earlier_of__in=facts, by_hand=False))
    _settle(rows)
    return removed


def _lock(facts: QuerySet[Fact]) -> list[UUID]:
    rows = facts.select_for_update(of=("self",)).order_by("pk")
    return list(rows.values_list("pk", flat=True))


def _settle(facts: QuerySet[Fact]) -> None:
    """Has facts begin with their first source, and be as certain as their most certain one; not
    those that somebody gave or changed.
    """
    sources = FactSource.objects.filter(project=OuterRef("project"), fact=OuterRef("pk"))
    told = (
        facts.filter(by_hand=False, version=1, retired_at=None)
        .order_by("pk")
        .annotate(
            first=Subquery(sources.order_by("valid_from").values("valid_from")[:1]),
            surest=Subquery(sources.order_by("-confidence").values("confidence")[:1]),
        )
    )
    for fact in told:
        if fact.first and (fact.first, fact.surest) != (fact.valid_from, fact.confidence):
            fact.valid_from, fact.confidence = fact.first, fact.surest
            fact.save(update_fields=["valid_from", "confidence"])


def approve_with(entry: Entry) -> None:
    """Takes in what waited with `entry`, which was taken in; what reads like instructions itself
    goes on waiting.
    """
    here = Fact.objects.filter(project=entry.project_id)
    rows = here.current().filter(state=Standing.PROPOSED, sources__entry=entry)
    waiting = rows.select_for_update(of=("self",)).order_by("pk")
    clean = [fact.pk for fact in waiting if not commands(fact)]
    here.filter(pk__in=clean).update(
        state=Standing.LIVE, waits_because="", recorded_at=timezone.now()
    )


def redact(entry: Entry, passage: str) -> None:
    """Takes away what the facts of `entry` tell, or told before somebody changed them, of
    `passage`; it is not found there again.
    """
    phrase = folded(passage)
    here = Fact.objects.filter(project=entry.project_id)
    versions = versions_of(entry.project_id, here.filter(sources__entry=entry))
    holding = [one for one in versions if phrase in folded(one.text)]
    bury(holding)
    gone = {one.pk for one in holding}
    untell(entry.fact_sources.filter(project=entry.project_id, fact__in=gone))
    remove(here.filter(pk__in=gone).exclude(earlier_of=None))


def versions_of(project: UUID, facts: QuerySet[Fact]) -> QuerySet[Fact]:
    """These facts of the project, as they are and as they were before somebody changed them."""
    ids = facts.values("pk")
    return Fact.objects.filter(Q(pk__in=ids) | Q(earlier_of__in=ids), project=project)


def mark_of(told: Statement | Fact, session: object) -> str:
    """The digest under which a fact that was forgotten is known in a session that told it."""
    parts = (str(session), told.text, str(told.user_id or ""))
    return sha256("\n".join(folded(part) for part in parts).encode()).hexdigest()


def bury(versions: Iterable[Fact]) -> list[Tombstone]:
    """Has `versions` of facts not come back from the sessions that told these."""
    versions = list(versions)
    told = {one.earlier_of_id or one.pk for one in versions}
    projects = {one.project_id for one in versions}
    sources = FactSource.objects.filter(project__in=projects, fact__in=told)
    sessions = defaultdict(set)
    for fact, session in sources.values_list("fact", "session"):
        sessions[fact].add(session)
    stones = [
        Tombstone(project_id=one.project_id, kind=Grave.FACT, subject=mark_of(one, session))
        for one in versions
        for session in sessions[one.earlier_of_id or one.pk]
    ]
    return Tombstone.objects.bulk_create(stones, ignore_conflicts=True)


def _unburied(entry: Entry, found: Sequence[Found]) -> list[Found]:
    marks = [mark_of(one.told, entry.session_id) for one in found]
    stones = Tombstone.objects.filter(project=entry.project, kind=Grave.FACT, subject__in=marks)
    buried = set(stones.values_list("subject", flat=True)) if marks else set()
    return [one for one, mark in zip(found, marks, strict=True) if mark not in buried]


def _note(entry: Entry, new_ones: dict[UUID, str]) -> None:
    """Which facts are new: those taken in, and those that wait."""
    for verb, state in ((Verb.RECORDED, Standing.LIVE), (Verb.PROPOSED, Standing.PROPOSED)):
        ids = [pk for pk, stands in new_ones.items() if stands == state]
        if ids:
            note(
                entry.project_id,
                verb,
                related=ids,
                entry_id=entry.pk,
                session_id=entry.session_id,
                granularity=entry.granularity,
                period_key=entry.period_key,
            )
