"""Extraction of facts from conversations.

The model call that writes a summary also returns claims. Each claim cites a message. If the
messages support the claim, it is recorded as a fact with the cited message as its source. When a
summary is rewritten, facts that no summary states any more are retired.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from hashlib import sha256
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from chat.models import Message
from memory.facts.create import (
    Statement,
    find_corrected,
    find_same_fact,
    insert_fact,
    lock_topics,
    reads_as_instruction,
)
from memory.facts.grounding import is_grounded, without_others
from memory.layers.entities import EntityKind, date_readings, find_all_entities
from memory.layers.summarising.answers import FactClaim
from memory.models import (
    ActivityVerb,
    Entry,
    EntryStatus,
    Fact,
    FactSource,
    FactStatus,
    ReviewReason,
    Tombstone,
    TombstoneKind,
)
from memory.models.activity import record_entry_activity
from memory.models.facts import normalize_text
from memory.moderation.redaction import RedactedPhrases
from projects.models import Project, delete_rows

# A fact may also use words of this number of messages before and after the cited message.
NEIGHBOURS = 1
# A day that the messages do not name as a date ("since Monday") is accepted if it is at most this
# far from the time of the message.
NEARBY = timedelta(days=31)
# Subjects that mean the speaker, and pronouns that mean nobody outside of their message.
_SPEAKER = frozenset(
    "i me my myself user speaker ich mich mir selbst benutzer benutzerin nutzer nutzerin".split()
) | {"the user", "the speaker", "der benutzer", "der nutzer"}
_NOBODY = frozenset(
    "we us our you he him she her it they them this that one someone somebody everyone "
    "wir uns unser du dich dir er ihn ihm sie ihr ihnen es das dies diese man jemand alle".split()
)


@dataclass(frozen=True)
class ExtractedFact:
    """A statement and the message that states it."""

    statement: Statement
    message: Message


def ground_claims(
    claims: Iterable[FactClaim], messages: Sequence[Message], project: Project
) -> list[ExtractedFact]:
    """Return the claims that `messages` support. Claims cite messages by their number, from 1.

    A personal fact is about the author of the cited message, and the words of other people do not
    support it. If the author has no account, or the message was recorded in another name, the fact
    becomes a fact of the project. Personal facts about the assistant are dropped.
    """
    facts = (_ground(claim, messages, project) for claim in claims)
    return list({(fact.statement, fact.message.pk): fact for fact in facts if fact}.values())


def _ground(
    claim: FactClaim, messages: Sequence[Message], project: Project
) -> ExtractedFact | None:
    if not 1 <= claim.line <= len(messages):
        return None
    place = claim.line - 1
    message = messages[place]
    subject = _subject(claim, message)
    around = messages[max(place - NEIGHBOURS, 0) : place + NEIGHBOURS + 1]
    is_about_author = claim.personal and message.author_id and not message.recorded_by
    if is_about_author:
        around = without_others(around, message, messages)
    material = [text for neighbour in around for text in (neighbour.speaker, neighbour.text)]
    if not subject or not is_grounded(subject, material) or not is_grounded(claim.object, material):
        return None
    if claim.personal and message.role != "user":
        return None
    statement = Statement(
        subject=subject,
        predicate=claim.predicate,
        object=claim.object,
        valid_from=_valid_from(claim.since, message.created_at, material, project),
        confidence=claim.confidence,
        user_id=message.author_id if is_about_author else None,
    ).normalized()
    is_complete = statement.subject and statement.predicate and statement.object
    return ExtractedFact(statement, message) if is_complete else None


def _subject(claim: FactClaim, message: Message) -> str:
    """Return the name of the subject; empty for a pronoun that names nobody."""
    name = normalize_text(claim.subject)
    if name in _SPEAKER:
        return message.speaker if message.role == "user" else ""
    # A name in capitals, such as MAN, is no pronoun.
    return "" if name in _NOBODY and not claim.subject.isupper() else claim.subject


def _valid_from(
    day: date | None, sent_at: datetime, material: Sequence[str], project: Project
) -> datetime:
    """Return the beginning of `day` if it is in the text or near `sent_at`, otherwise `sent_at`."""
    if day is None or not date(1900, 1, 1) <= day <= date(2200, 1, 1):
        return sent_at
    if day == sent_at.astimezone(project.zone).date():
        # Keep the order of two statements on the same day.
        return sent_at
    begin = datetime.combine(day, time.min, project.zone)
    is_supported = abs(begin - sent_at) <= NEARBY or _mentions(day, "\n".join(material))
    return begin if is_supported else sent_at


def _mentions(day: date, text: str) -> bool:
    forms = {f"{day:%Y-%m-%d}", f"--{day:%m-%d}"}
    if day.day == 1:
        forms |= {f"{day:%Y-%m}", f"--{day:%m}"}
        if day.month == 1:
            forms.add(f"{day:%Y}")
    return any(
        reading in forms
        for entity in find_all_entities(text)
        if entity.kind == EntityKind.DATE
        for reading in date_readings(entity.form)
    )


def record_extracted(
    entry: Entry,
    extracted: Sequence[ExtractedFact],
    messages: Sequence[Message],
    now: datetime,
    is_whole: bool,
    for_good: bool = False,
) -> None:
    """Record the facts that were extracted with the saved `entry` from its `messages`.

    Facts that the entry stated earlier and no longer states are retired at `now`. With `for_good`,
    they are deleted. Facts whose message is unchanged stay if somebody changed them by hand, or if
    the extraction did not cover all messages (`is_whole` is false). Call this in the transaction
    that saves the entry.
    """
    # Lock before reading tombstones, so that those of a concurrent forget request are visible.
    topics = {fact.statement.topic for fact in extracted}
    lock_topics(entry.project, topics)
    _lock_facts(entry, topics)
    new_states: dict[UUID, str] = {}
    sources: set[UUID] = set()
    facts: set[UUID] = set()
    for extracted_fact in _without_tombstones(entry, extracted):
        fact, is_new = _find_or_insert(entry, extracted_fact, now)
        facts.add(fact.pk)
        sources.add(_save_source(entry, fact, extracted_fact))
        if is_new:
            new_states[fact.pk] = fact.state
    if facts:
        _update_from_sources(Fact.objects.filter(project=entry.project_id, pk__in=facts))
    stale = _stale_sources(entry, sources, messages, is_whole)
    remove_sources(stale, at=None if for_good else now)
    _record_new(entry, new_states)


def _lock_facts(entry: Entry, topics: Collection[str]) -> None:
    """Lock the facts of `topics` and those of `entry`, in the order of their ids, as forgetting
    does.
    """
    rows = Fact.objects.filter(project=entry.project_id).current()
    stated = FactSource.objects.filter(project=entry.project_id, entry=entry).values("fact")
    rows = rows.filter(Q(topic__in=topics) | Q(pk__in=stated))
    list(rows.select_for_update(of=("self",)).order_by("pk").values_list("pk"))


def _find_or_insert(entry: Entry, extracted: ExtractedFact, now: datetime) -> tuple[Fact, bool]:
    statement = extracted.statement
    known = Fact.objects.filter(project=entry.project_id)
    fact = find_same_fact(known, statement) or find_corrected(
        entry.project, statement, extracted.message.pk
    )
    if reads_as_instruction(statement):
        review_reason: str = ReviewReason.INSTRUCTIONS
    else:
        review_reason = entry.waits_because if entry.state == EntryStatus.PROPOSED else ""
    if fact is None:
        return insert_fact(entry.project, statement, entry.written_by, review_reason, now), True
    if fact.state == FactStatus.PROPOSED and not review_reason:
        # The fact was stated again, in an entry that needs no review.
        fact.state, fact.waits_because, fact.recorded_at = FactStatus.LIVE, "", now
        fact.save(update_fields=["state", "waits_because", "recorded_at"])
    return fact, False


def _save_source(entry: Entry, fact: Fact, extracted: ExtractedFact) -> UUID:
    source, _ = FactSource.objects.update_or_create(
        project=entry.project,
        fact=fact,
        message=extracted.message,
        defaults={
            "session_id": extracted.message.session_id,
            "entry": entry,
            "valid_from": extracted.statement.valid_from,
            "confidence": extracted.statement.confidence,
            "found_at": timezone.now(),
        },
    )
    return source.pk


def _stale_sources(
    entry: Entry, current: set[UUID], messages: Sequence[Message], is_whole: bool
) -> QuerySet[FactSource]:
    """Return the sources of facts that `entry` stated earlier and no longer states."""
    stays = Q(message__in=messages) & (
        Q(message__edited_at=None) | Q(message__edited_at__lt=F("found_at"))
    )
    if is_whole:
        stays &= Q(fact__by_hand=True) | Q(fact__version__gt=1)
    sources = FactSource.objects.filter(project=entry.project_id, entry=entry)
    return sources.filter(fact__retired_at=None).exclude(pk__in=current).exclude(stays)


def remove_sources(sources: QuerySet[FactSource], at: datetime | None = None) -> int:
    """Delete `sources`. Return how many facts were deleted or retired because of this.

    A fact that was not entered by hand is deleted with its last source. With `at`, it is retired at
    that moment instead: it keeps its source, and can be queried as of an earlier time. Extracted
    earlier versions stay only if a source found before their retirement remains. `sources` must be
    filtered by project.
    """
    rows = list(sources.values_list("project", "pk", "fact"))
    if not rows:
        return 0
    projects = {project for project, _, _ in rows}
    lost = [(pk, fact) for _, pk, fact in rows]
    all_facts = Fact.objects.filter(project__in=projects)
    locked = all_facts.filter(pk__in={fact for _, fact in lost}).select_for_update(of=("self",))
    facts = list(locked.order_by("pk").values_list("pk", flat=True))
    others = FactSource.objects.filter(project=OuterRef("project"))
    others = others.exclude(pk__in=[pk for pk, _ in lost])
    touched = all_facts.filter(pk__in=facts)
    unsupported = touched.filter(~Exists(others.filter(fact=OuterRef("pk"))), by_hand=False)
    if at is not None:
        retired = set(unsupported.values_list("pk", flat=True))
        unsupported.filter(retired_at=None).update(retired_at=at)
        lost = [(pk, fact) for pk, fact in lost if fact not in retired]
        removed = len(retired)
    else:
        removed = delete_rows(unsupported)
    delete_rows(FactSource.objects.filter(project__in=projects, pk__in=[pk for pk, _ in lost]))
    older_sources = FactSource.objects.filter(
        project=OuterRef("project"),
        fact=OuterRef("earlier_of"),
        found_at__lt=OuterRef("retired_at"),
    )
    delete_rows(all_facts.filter(~Exists(older_sources), earlier_of__in=facts, by_hand=False))
    _update_from_sources(touched)
    return removed


def _update_from_sources(facts: QuerySet[Fact]) -> None:
    """Set the start of each fact to that of its first source, and its confidence to the highest of
    its sources.

    Facts that somebody entered or changed by hand are not updated.
    """
    sources = FactSource.objects.filter(project=OuterRef("project"), fact=OuterRef("pk"))
    rows = (
        facts.filter(by_hand=False, version=1, retired_at=None)
        .order_by("pk")
        .annotate(
            first=Subquery(sources.order_by("valid_from").values("valid_from")[:1]),
            surest=Subquery(sources.order_by("-confidence").values("confidence")[:1]),
        )
    )
    for fact in rows:
        if fact.first and (fact.first, fact.surest) != (fact.valid_from, fact.confidence):
            fact.valid_from, fact.confidence = fact.first, fact.surest
            fact.save(update_fields=["valid_from", "confidence"])


def approve_facts_of(entry: Entry) -> None:
    """Approve the facts that waited with `entry`, except those that read like instructions."""
    facts = Fact.objects.filter(project=entry.project_id)
    rows = facts.current().filter(state=FactStatus.PROPOSED, sources__entry=entry)
    waiting = rows.select_for_update(of=("self",)).order_by("pk")
    clean = [fact.pk for fact in waiting if not reads_as_instruction(fact)]
    facts.filter(pk__in=clean).update(
        state=FactStatus.LIVE, waits_because="", recorded_at=timezone.now()
    )


def redact(entry: Entry, passage: str) -> None:
    """Remove `entry` as a source of facts that contain `passage`. Delete earlier versions that do.

    Tombstones prevent the facts from being extracted from the same session again.
    """
    phrase = normalize_text(passage)
    if not phrase:
        # Every fact contains the empty phrase.
        return
    facts = Fact.objects.filter(project=entry.project_id)
    versions = versions_of(entry.project_id, facts.filter(sources__entry=entry))
    matching = [version for version in versions if phrase in normalize_text(version.text)]
    create_fact_tombstones(matching)
    ids = {version.pk for version in matching}
    remove_sources(entry.fact_sources.filter(project=entry.project_id, fact__in=ids))
    delete_rows(facts.filter(pk__in=ids).exclude(earlier_of=None))


def versions_of(project: UUID, facts: QuerySet[Fact]) -> QuerySet[Fact]:
    """Return the current and earlier versions of `facts`, which belong to `project`."""
    ids = facts.values("pk")
    return Fact.objects.filter(Q(pk__in=ids) | Q(earlier_of__in=ids), project=project)


def tombstone_subject(fact: Statement | Fact, session: UUID) -> str:
    """Return the hash that identifies the fact in `session` for a tombstone.

    It covers only the first half of the id of the session, which is the same in an imported copy of
    the project.
    """
    return _hash_of(fact, session.hex[:16])


def _hash_of(fact: Statement | Fact, session: str) -> str:
    parts = (session, fact.text, str(fact.user_id or ""))
    return sha256("\n".join(normalize_text(part) for part in parts).encode()).hexdigest()


def create_fact_tombstones(versions: Iterable[Fact]) -> list[Tombstone]:
    """Create tombstones, so that these facts are not extracted again from their sessions."""
    versions = list(versions)
    facts = {version.earlier_of_id or version.pk for version in versions}
    projects = {version.project_id for version in versions}
    sources = FactSource.objects.filter(project__in=projects, fact__in=facts)
    sessions = defaultdict(set)
    for fact, session in sources.values_list("fact", "session"):
        sessions[fact].add(session)
    tombstones = [
        Tombstone(
            project_id=version.project_id,
            kind=TombstoneKind.FACT,
            subject=tombstone_subject(version, session),
        )
        for version in versions
        for session in sessions[version.earlier_of_id or version.pk]
    ]
    return Tombstone.objects.bulk_create(tombstones, ignore_conflicts=True)


def _without_tombstones(entry: Entry, extracted: Sequence[ExtractedFact]) -> list[ExtractedFact]:
    """Return the `extracted` facts that were not forgotten or redacted."""
    # A redaction makes a new revision.
    redacted = RedactedPhrases.of(entry) if entry.revision > 1 else None
    session = entry.session_id
    assert session is not None
    # Older versions of Strata hashed the whole id of the session.
    subjects = [
        {tombstone_subject(it.statement, session), _hash_of(it.statement, str(session))}
        for it in extracted
    ]
    tombstones = Tombstone.objects.filter(
        project=entry.project, kind=TombstoneKind.FACT, subject__in=set[str]().union(*subjects)
    )
    forgotten = set(tombstones.values_list("subject", flat=True)) if subjects else set()
    return [
        fact
        for fact, hashes in zip(extracted, subjects, strict=True)
        if not hashes & forgotten and not (redacted and redacted.contained_in(fact.statement.text))
    ]


def _record_new(entry: Entry, new_states: dict[UUID, str]) -> None:
    """Log the new facts of an entry: first the live facts, then the proposed facts."""
    for verb, state in (
        (ActivityVerb.RECORDED, FactStatus.LIVE),
        (ActivityVerb.PROPOSED, FactStatus.PROPOSED),
    ):
        if ids := [pk for pk, new_state in new_states.items() if new_state == state]:
            record_entry_activity(entry, verb, related=ids, session_id=entry.session_id)
