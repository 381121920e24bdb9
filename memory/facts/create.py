"""Create facts: as a new row, or by adding a source to an equal fact."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from memory.facts.permissions import known_facts, may_decide
from memory.layers.injection_detection import reads_like_instructions
from memory.models import ActivityVerb, Fact, FactSource, FactStatus, ReviewReason
from memory.models.activity import record_activity
from memory.models.facts import (
    MAX_OBJECT_CHARS,
    MAX_PREDICATE_CHARS,
    MAX_SUBJECT_CHARS,
    FactQuerySet,
    topic_key,
)
from projects.core.database import fetch
from projects.core.errors import InvalidInputError
from projects.core.text import storable
from projects.models import MemberRole, Membership, Project

# Times near the limits of `datetime` cannot be converted to every time zone.
MIN_YEAR, MAX_YEAR = 2, 9_998


@dataclass(frozen=True)
class Statement:
    """The content of a fact. The fields are named like the columns of `Fact`. `user_id` is the user
    that the fact is about, None for the project. `confidence` is from 0 to 1.
    """

    subject: str
    predicate: str
    object: str
    valid_from: datetime
    valid_until: datetime | None = None
    confidence: float = 1.0
    user_id: int | None = None

    @classmethod
    def of(cls, fact: Fact) -> "Statement":
        return cls(**{field.name: getattr(fact, field.name) for field in fields(cls)})

    @property
    def text(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"

    @property
    def topic(self) -> str:
        return topic_key(self.user_id, self.subject, self.predicate)

    def normalized(self) -> "Statement":
        """Return the statement as it is stored: each part on one line and within its limit."""

        def on_one_line(text: str) -> str:
            return " ".join(storable(text).split())

        return replace(
            self,
            subject=on_one_line(self.subject)[:MAX_SUBJECT_CHARS],
            predicate=on_one_line(self.predicate)[:MAX_PREDICATE_CHARS],
            object=on_one_line(self.object)[:MAX_OBJECT_CHARS],
        )

    def checked(self) -> "Statement":
        """Return the statement itself. Raises InvalidInputError if it ends before it begins, or if
        a year is not from MIN_YEAR to MAX_YEAR.
        """
        for moment in (self.valid_from, self.valid_until):
            if moment is not None and not MIN_YEAR <= moment.year <= MAX_YEAR:
                years = {"first": MIN_YEAR, "last": MAX_YEAR}
                raise InvalidInputError(
                    _("The year must be between %(first)d and %(last)d.") % years
                )
        if self.valid_until is not None and self.valid_until <= self.valid_from:
            raise InvalidInputError(_("The end must be after the start."))
        return self


def create_fact(member: Membership, statement: Statement) -> tuple[Fact, bool]:
    """Record a statement that `member` enters by hand; return the fact and whether it is new.

    A statement that reads like instructions to a model waits for review. If the project
    reviews new memories, a statement about the project waits too, unless `member` is an owner.
    Raises InvalidInputError like `Statement.checked`, if the same fact is known with a different
    end, and if the same fact was hidden by an owner.
    """
    statement = statement.normalized().checked()
    project = member.project
    review_reason = _review_reason(member, statement)
    with transaction.atomic():
        lock_topics(project, [statement.topic])
        # A proposed fact of another member's private chat does not exist for this member.
        fact = find_same_fact(known_facts(member), statement)
        is_new = fact is None
        if fact is None:
            author = member.user.get_username()
            fact = insert_fact(project, statement, author, review_reason, by_hand=True)
        else:
            _confirm(member, fact, statement)
        record_activity(
            project.pk,
            ActivityVerb.PROPOSED if is_new and review_reason else ActivityVerb.RECORDED,
            by=member.user,
            fact_id=fact.pk,
            reason=review_reason if is_new else "",
        )
    return fact, is_new


def _confirm(member: Membership, fact: Fact, statement: Statement) -> None:
    """Mark a known fact as entered by hand, so that it needs no source. If `member` may decide on
    it, a proposed or hidden fact becomes live.
    """
    if statement.valid_until not in (None, fact.valid_until):
        raise InvalidInputError(_("This fact already exists. To change its end, open the fact."))
    decides = may_decide(member, fact)
    if fact.state == FactStatus.HIDDEN and not decides:
        raise InvalidInputError(_("This fact already exists, but it is hidden."))
    if fact.state != FactStatus.LIVE and decides and not reads_as_instruction(statement):
        fact.state, fact.waits_because, fact.recorded_at = FactStatus.LIVE, "", timezone.now()
    if not fact.by_hand:
        fact.by_hand, fact.written_by = True, member.user.get_username()
    fact.valid_from = min(fact.valid_from, statement.valid_from)
    fact.confidence = max(fact.confidence, statement.confidence)
    fact.save(
        update_fields=[
            "by_hand",
            "written_by",
            "valid_from",
            "confidence",
            "state",
            "waits_because",
            "recorded_at",
        ]
    )


def _review_reason(member: Membership, statement: Statement) -> str:
    if reads_as_instruction(statement):
        return ReviewReason.INSTRUCTIONS
    # A fact about the member needs no review, because it concerns nobody else.
    is_reviewed = member.project.review_memories and statement.user_id is None
    return ReviewReason.PROJECT_RULE if is_reviewed and member.role != MemberRole.OWNER else ""


def reads_as_instruction(fact: Statement | Fact) -> bool:
    """Return whether the fact or one of its parts reads like instructions to a model."""
    return reads_like_instructions(
        "\n".join((fact.text, fact.subject, fact.predicate, fact.object))
    )


def lock_topics(project: Project, topics: Iterable[str]) -> None:
    """Lock `topics` until the end of the transaction, so that nobody else changes facts of them.

    Topics are locked in sorted order, so that two transactions cannot deadlock.
    """
    for topic in sorted(set(topics)):
        fetch("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{project.pk} {topic}"])


def insert_fact(
    project: Project,
    statement: Statement,
    written_by: str,
    review_reason: str,
    now: datetime | None = None,
    by_hand: bool = False,
) -> Fact:
    fact = Fact(
        project=project,
        **asdict(statement),
        recorded_at=now or timezone.now(),
        state=FactStatus.PROPOSED if review_reason else FactStatus.LIVE,
        waits_because=review_reason,
        by_hand=by_hand,
        written_by=written_by,
    )
    fact.set_keys()
    fact.save(force_insert=True)
    return fact


def find_same_fact(known: FactQuerySet, statement: Statement) -> Fact | None:
    """Return the fact among `known`, facts of one project, that equals `statement`, locked. The
    caller must have locked its topic.

    Two facts are equal if they have the same object, no other fact of the topic begins between
    their start times, and neither has ended when the other begins. A hidden fact can also be
    returned.
    """
    rows = known.current().filter(topic=statement.topic)
    facts = list(rows.select_for_update(of=("self",)).order_by("pk"))
    same = [fact for fact in facts if fact.has_object(statement.object)]
    others = [fact for fact in facts if fact not in same and fact.state != FactStatus.HIDDEN]
    for fact in sorted(same, key=lambda fact: abs(fact.valid_from - statement.valid_from)):
        first, last = sorted((fact.valid_from, statement.valid_from))
        ends = (fact.valid_until, statement.valid_until)
        has_ended = any(end is not None and end <= last for end in ends)
        if not has_ended and not any(first < other.valid_from <= last for other in others):
            return fact
    return None


def find_corrected(project: Project, statement: Statement, message: UUID) -> Fact | None:
    """Return the current version of a fact from `message` that once had this `statement`. A fact
    that was retired is not returned.
    """
    sources = FactSource.objects.filter(project=project, message=message)
    facts = sources.filter(fact__retired_at=None).values("fact")
    earlier = Fact.objects.filter(project=project, topic=statement.topic, earlier_of__in=facts)
    for version in earlier.select_related("earlier_of"):
        if version.has_object(statement.object) and version.earlier_of is not None:
            return version.earlier_of
    return None
