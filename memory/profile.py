"""Profile: sentences that a project knows, in general and about one of its members."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, Exists, Max, OuterRef, Q, When
from django.utils import timezone

from chat.models import Message, Session
from chat.permissions import sessions_for
from memory.facts.permissions import facts_for, may_decide
from memory.facts.superseded import EndedFact, ended_facts, mark_ended
from memory.layers.lines import Line, LineIndex, from_text
from memory.models import Activity, ActivityVerb, Block, Entry, EntryStatus, Fact, FactSource
from memory.models.entries import CONVERSATION
from memory.models.facts import FactQuerySet
from memory.permissions import entries_for
from memory.prompt.receipt_sources import ReceiptSource, readable_sections
from projects.models import Membership

MAX_ROWS = 10
MAX_SENTENCES = 8
MAX_PINS = 2
MAX_FACTS = 4
# The number of rows from which sentences are chosen.
CANDIDATES = 12
# A longer line becomes a sentence only if its entry has no shorter line.
MAX_LINE_CHARS = 240
# The maximum number of lines of an entry or block from which one is chosen.
MAX_LINES = 6


@dataclass(frozen=True)
class Profile:
    """Counts and samples. `facts` are facts that are about the person or stated by the person."""

    sessions: int
    messages: int
    facts: int
    last_seen: datetime | None
    recent_sessions: list[Session]
    sample_facts: list[Fact]


@dataclass(frozen=True)
class Sentence:
    """One thing that a project knows. `place` is the index of the line in the text of its source.
    `version` is the version of the source.

    `editable` is the part that a member may change: a line, or the object of a fact after `lead`.
    `checked` is true if a member has confirmed this version. `removable` is true if the reader may
    remove the sentence.
    """

    text: str
    source: ReceiptSource
    editable: str
    version: int
    place: int = 0
    lead: str = ""
    checked: bool = False
    removable: bool = True


@dataclass(frozen=True)
class _Choice:
    """A candidate for a sentence: a row, and the index and text of one of its lines."""

    row: Fact | Entry | Block
    line: Line
    place: int = 0

    @property
    def version(self) -> int:
        return self.row.revision if isinstance(self.row, Entry) else self.row.version

    @property
    def item(self) -> dict[str, Any]:
        """The row as an item of a receipt, which `readable_sections` can read."""
        item = {"id": str(self.row.pk), "revision": self.version, "tokens": 0}
        if isinstance(self.row, Entry):
            return item | {
                "kind": self.row.granularity,
                "lines": [self.place],
                "of": len(self.row.lines),
            }
        return item | {"kind": "fact" if isinstance(self.row, Fact) else "block"}


def profile(member: Membership, user) -> Profile:
    """Return the profile of `user`, limited to what `member` may see."""
    visible = sessions_for(member.user).filter(project=member.project)
    sessions = visible.filter(creator=user)
    # Without the project, the subquery is read by the ids of sessions. With it, and with table
    # statistics from before an import, the planner reads all sessions for each message.
    messages = Message.objects.filter(
        project=member.project, session__in=sessions_for(member.user), author=user, deleted_at=None
    ).aggregate(count=Count("pk"), last=Max("created_at"))
    facts = _facts_of(member, user)
    return Profile(
        sessions=sessions.count(),
        messages=messages["count"],
        facts=facts.count(),
        last_seen=messages["last"],
        recent_sessions=list(sessions.newest_first()[:MAX_ROWS]),
        sample_facts=list(facts.newest_first()[:MAX_ROWS]),
    )


def _facts_of(member: Membership, user: Any) -> FactQuerySet:
    """Return facts about `user`, and facts that `user` stated in chats that `member` may read."""
    visible = sessions_for(member.user).filter(project=member.project)
    stated = FactSource.objects.filter(
        fact=OuterRef("pk"), message__author=user, session__in=visible
    )
    return facts_for(member).with_validity().filter(Q(user=user) | Exists(stated))


def project_knowledge(member: Membership) -> list[Sentence]:
    """Return at most MAX_SENTENCES sentences that the project knows: facts, pinned text, and lines
    of its newest digests. Takes at most ten queries.
    """
    facts = facts_for(member).filter(user=None).with_validity()
    digests_first = Case(When(granularity=CONVERSATION, then=1), default=0)
    entries = entries_for(member).filter(state=EntryStatus.LIVE, withheld=False)
    newest = entries.order_by(digests_first, "-last_source_at", "-id")
    chosen = _chosen(
        member,
        facts.valid_at(timezone.now()).newest_first()[:CANDIDATES],
        ((entry, range(MAX_LINES)) for entry in newest[:CANDIDATES]),
        Block.objects.filter(project=member.project, user=None).in_order()[:MAX_PINS],
    )
    return _sentences(member, chosen)


def personal_knowledge(member: Membership) -> list[Sentence]:
    """Return at most MAX_SENTENCES sentences about the member: facts, the member's own pinned text,
    and lines that are based on the member's messages. Takes at most ten queries.
    """
    facts = _facts_of(member, member.user_id).valid_at(timezone.now())
    entries = entries_for(member).in_layers()
    # Imported and shared chats have several authors, of whom one created them.
    wrote = Message.objects.filter(project=member.project, author=member.user_id)
    is_mine = Q(session__creator=member.user_id) | Q(session__in=wrote.values("session"))
    mine = entries.filter(is_mine, withheld=False).newest_first()
    chosen = _chosen(
        member,
        facts.newest_first()[:CANDIDATES],
        _with_lines_of(member, mine[:CANDIDATES]),
        Block.objects.filter(project=member.project, user=member.user_id).in_order()[:MAX_PINS],
    )
    return _sentences(member, chosen)


def _with_lines_of(member: Membership, entries: Iterable[Entry]) -> list[tuple[Entry, set[int]]]:
    """Return `entries`, each with the indexes of its lines based on the member's messages."""
    lines = {entry: entry.read_lines()[:MAX_LINES] for entry in entries}
    sources = {source for read in lines.values() for line in read for source in line.sources}
    mine = Message.objects.filter(project=member.project, pk__in=sources).spoken_by(member.user)
    own = set(mine.values_list("pk", flat=True)) if sources else set()
    return [
        (entry, {place for place, line in enumerate(read) if own & {*line.sources}})
        for entry, read in lines.items()
    ]


def _chosen(
    member: Membership,
    facts: Iterable[Fact],
    entries: Iterable[tuple[Entry, Container[int]]],
    blocks: Iterable[Block],
) -> list[_Choice]:
    """Return the candidates: facts with different subjects, a line of each pinned text, and one of
    the given lines of each entry. Lines that repeat another line or state an ended fact are left
    out.
    """
    taken = LineIndex()
    pinned = _first_new((_block_choices(block) for block in blocks), taken)
    by_subject: dict[tuple[int | None, str], Fact] = {}
    for fact in facts:
        by_subject.setdefault((fact.user_id, fact.subject_key), fact)
    stated = (
        [_Choice(fact, Line(fact.text, timezone.localdate(fact.valid_from)))]
        for fact in by_subject.values()
    )
    known = _first_new(stated, taken)
    ended = ended_facts(member.project)
    digested = _first_new((_entry_choices(*row, ended) for row in entries), taken)
    room = MAX_SENTENCES - len(pinned)
    facts_shown = max(MAX_FACTS, room - len(digested))
    shown = known[:facts_shown]
    return [*shown, *digested[: room - len(shown)], *pinned]


def _block_choices(block: Block) -> list[_Choice]:
    lines = ((place, text) for place, text in enumerate(block.content.splitlines()))
    day = timezone.localdate(block.updated_at)
    return [
        _Choice(block, line, place) for place, text in lines for line in from_text(text, day)[:1]
    ][:MAX_LINES]


def _entry_choices(
    entry: Entry, places: Container[int], ended: Sequence[EndedFact]
) -> list[_Choice]:
    if not entry.lines:
        # The entry has no stored lines, so there are no indexes.
        return []
    lines = mark_ended(entry.read_lines()[:MAX_LINES], ended)
    choices = [
        _Choice(entry, line, place)
        for place, line in enumerate(lines)
        if place in places and not line.until
    ]
    # The sort is stable, so the most important of the short lines stays first.
    return sorted(choices, key=lambda choice: len(choice.line.shown) > MAX_LINE_CHARS)


def _first_new(rows: Iterable[Sequence[_Choice]], taken: LineIndex) -> list[_Choice]:
    """Return the first candidate of each row that repeats no line in `taken`. Add it to `taken`."""
    chosen = []
    for choices in rows:
        choice = next((it for it in choices if not taken.repeats(it.line)), None)
        if choice is not None:
            taken.add(choice.line)
            chosen.append(choice)
    return chosen


def _sentences(member: Membership, chosen: Sequence[_Choice]) -> list[Sentence]:
    """Return the sentences with the sources that `member` may see."""
    if not chosen:
        return []
    # A section for each candidate, so that sources that are not visible do not shift the others.
    sections = [{"name": "known", "tokens": 0, "items": [choice.item]} for choice in chosen]
    readable = readable_sections({"sections": sections}, member)
    checks = _checks(member, chosen)
    return [
        _sentence(member, choice, section.sources[0], checks.get(choice.row.pk))
        for choice, section in zip(chosen, readable, strict=True)
        if section.sources
    ]


def _sentence(
    member: Membership, choice: _Choice, source: ReceiptSource, checked_at: datetime | None
) -> Sentence:
    row, text = choice.row, choice.line.shown
    since, editable, lead = None, text, ""
    if isinstance(row, Fact):
        since, editable, lead = row.recorded_at, row.object, f"{row.subject} {row.predicate}"
    elif isinstance(row, Entry):
        since = row.written_at
    elif source.correct_url:
        source = replace(source, key=f"block:{row.pk}")
    # Before a quotation there is the name of its speaker.
    beginning = text[:1] if choice.line.speaker else text[:1].upper()
    return Sentence(
        text=beginning + text[1:] + ("" if text[-1:] in ".!?…”\"')" else "."),
        source=source,
        editable=editable,
        version=choice.version,
        place=choice.place,
        lead=lead,
        checked=bool(checked_at and since and checked_at > since),
        removable=not isinstance(row, Fact) or may_decide(member, row),
    )


def _checks(member: Membership, chosen: Sequence[_Choice]) -> dict[Any, datetime]:
    """Return, by id, the time at which each row was last checked."""
    facts = [choice.row.pk for choice in chosen if isinstance(choice.row, Fact)]
    entries = [choice.row.pk for choice in chosen if isinstance(choice.row, Entry)]
    acts = Activity.objects.filter(project=member.project, verb=ActivityVerb.CHECKED)
    acts = acts.filter(Q(fact_id__in=facts) | Q(entry_id__in=entries))
    rows = acts.order_by("id").values_list("fact_id", "entry_id", "at")
    return {fact or entry: at for fact, entry, at in rows}
