"""How a fact comes onto the record: as a row of its own, or as one that says the same already."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.storable import storable
from memory.layers.suspicion import reads_like_instructions
from memory.models import Fact, FactSource, Standing, Verb, Waiting
from memory.models.activity import note
from memory.models.facts import LONGEST_OBJECT, LONGEST_PREDICATE, LONGEST_SUBJECT, topic_of
from projects.models import Membership, Project, Role


class Refused(Exception):
    """A change that cannot be made; the text says why, for people."""


class Stale(Refused):
    """The fact was changed since its editor read it."""


@dataclass(frozen=True)
class Statement:
    """What is said to be so from `valid_from` on. `user_id`: whom alone it is about, None for the
    project. `confidence` is from 0 to 1.
    """

    subject: str
    predicate: str
    object: str
    valid_from: datetime
    valid_until: datetime | None = None
    confidence: float = 1.0
    user_id: int | None = None

    @property
    def text(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"

    @property
    def topic(self) -> str:
        return topic_of(self.user_id, self.subject, self.predicate)

    def tidied(self) -> "Statement":
        """With its words on one line each, as they are kept."""
        return replace(
            self,
            subject=on_one_line(self.subject)[:LONGEST_SUBJECT],
            predicate=on_one_line(self.predicate)[:LONGEST_PREDICATE],
            object=on_one_line(self.object)[:LONGEST_OBJECT],
        )


def on_one_line(text: str) -> str:
    return " ".join(storable(text).split())


def give(member: Membership, told: Statement) -> tuple[Fact, bool]:
    """Records what `member` says by hand; True if it was not known before.

    What reads like instructions to a model waits for an owner, and where the project reviews new
    memories all that others than owners give. Raises Refused for an end before the beginning, for
    one that differs from what is known already, and for what an owner hid.
    """
    told = told.tidied()
    if told.valid_until is not None and told.valid_until <= told.valid_from:
        raise Refused(_("It would end before it begins."))
    project = member.project
    waits = _waits_because(member, told)
    with transaction.atomic():
        lock(project, [told.topic])
        fact = same(project, told)
        made = fact is None
        if fact is None:
            fact = new(project, told, member.user.get_username(), waits, by_hand=True)
        else:
            _vouch(member, fact, told)
        note(
            project.pk,
            Verb.PROPOSED if made and waits else Verb.RECORDED,
            by=member.user,
            fact_id=fact.pk,
            reason=waits if made else "",
        )
    return fact, made


def _vouch(member: Membership, fact: Fact, told: Statement) -> None:
    """`member` says by hand what is known already: it stands without a source from now on, and in
    the word of an owner also what waited or was hidden.
    """
    if told.valid_until not in (None, fact.valid_until):
        raise Refused(_("This is known already; change its end there."))
    decides = member.role == Role.OWNER or fact.user_id == member.user_id
    if fact.state == Standing.HIDDEN and not decides:
        raise Refused(_("This is known already, and was hidden."))
    if fact.state != Standing.LIVE and decides and not commands(told):
        fact.state, fact.waits_because, fact.recorded_at = Standing.LIVE, "", timezone.now()
    if not fact.by_hand:
        fact.by_hand, fact.written_by = True, member.user.get_username()
    fact.valid_from = min(fact.valid_from, told.valid_from)
    fact.save(
        update_fields=[
            "by_hand",
            "written_by",
            "valid_from",
            "state",
            "waits_because",
            "recorded_at",
        ]
    )


def _waits_because(member: Membership, told: Statement) -> str:
    if commands(told):
        return Waiting.INSTRUCTIONS
    # What is about whoever gives it concerns nobody else.
    reviewed = member.project.review_memories and told.user_id is None
    return Waiting.ASKED if reviewed and member.role != Role.OWNER else ""


def commands(told: Statement | Fact) -> bool:
    """Whether it reads like an instruction to a model: as a whole, or in any of its parts."""
    return reads_like_instructions(
        "\n".join((told.text, told.subject, told.predicate, told.object))
    )


def lock(project: Project, topics: Iterable[str]) -> None:
    """Until the end of the transaction, nobody else records or changes facts of these topics.

    In one order, so that two who lock several never wait for each other in a circle.
    """
    with connection.cursor() as cursor:
        for topic in sorted(set(topics)):
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{project.pk} {topic}"]
            )


def new(
    project: Project,
    told: Statement,
    written_by: str,
    waits: str,
    now: datetime | None = None,
    by_hand: bool = False,
) -> Fact:
    fact = Fact(
        project=project,
        user_id=told.user_id,
        subject=told.subject,
        predicate=told.predicate,
        object=told.object,
        confidence=told.confidence,
        valid_from=told.valid_from,
        valid_until=told.valid_until,
        recorded_at=now or timezone.now(),
        state=Standing.PROPOSED if waits else Standing.LIVE,
        waits_because=waits,
        by_hand=by_hand,
        written_by=written_by,
    )
    fact.set_keys()
    fact.save(force_insert=True)
    return fact


def same(project: Project, told: Statement, message: UUID | None = None) -> Fact | None:
    """The fact, locked, that says this already; its topic is locked.

    It holds at the time told, or would if it began earlier or nothing ended it: no other of its
    topic begins between the two. One that was hidden says it too, and stays hidden. What somebody
    corrected says still what it said, as far as `message` told it before.
    """
    rows = Fact.objects.current().filter(project=project, topic=told.topic)
    there = list(rows.select_for_update(of=("self",)).order_by("pk"))
    alike = [fact for fact in there if fact.says_the_same(told.object)]
    others = [fact for fact in there if fact not in alike and fact.state != Standing.HIDDEN]
    for fact in sorted(alike, key=lambda one: abs(one.valid_from - told.valid_from)):
        if _is_one_stretch(fact, told, others):
            return fact
    return _corrected(project, told, message) if message else None


def _is_one_stretch(fact: Fact, told: Statement, others: Sequence[Fact]) -> bool:
    first, last = sorted((fact.valid_from, told.valid_from))
    if fact.valid_until is not None and fact.valid_until <= last:
        return False
    return not any(first < other.valid_from <= last for other in others)


def _corrected(project: Project, told: Statement, message: UUID) -> Fact | None:
    """The fact that `message` tells, and that said this before somebody changed it."""
    telling = FactSource.objects.filter(project=project, message=message).values("fact")
    earlier = Fact.objects.filter(project=project, topic=told.topic, earlier_of__in=telling)
    for one in earlier.select_related("earlier_of"):
        if one.says_the_same(told.object) and one.earlier_of is not None:
            return one.earlier_of
    return None
