"""Facts: what is held to be so, of what, since when; and where each was said.

A fact has two times: when it is so (`valid_from`, and until another of its topic begins), and
when the project held it so (`recorded_at` to `retired_at`). When it ends is not kept but asked: the
next fact of the same topic ends it. So whatever becomes of that next one, be it forgotten, hidden,
withheld with its summary or told late, the one before ends where it should.
"""

import hashlib
import unicodedata
from datetime import datetime

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db import models
from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Least
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.models import Message, Session
from memory.models.entries import Entry, State, Waiting
from projects.identifiers import new_id
from projects.models import OfProject, Project

LONGEST_SUBJECT = 200
LONGEST_PREDICATE = 100
LONGEST_OBJECT = 500
# By which facts are searched.
WORDS = SearchVector("subject", "predicate", "object", config="simple")


class Standing(models.TextChoices):
    PROPOSED = "proposed", _("waits for review")
    LIVE = "live", _("held to be so")
    HIDDEN = "hidden", _("hidden by a moderator")


def folded(text: str) -> str:
    """`text` in the form in which subjects, predicates and objects are the same: without regard to
    case, width, accents' encoding, spaces and what ends a sentence.
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(plain.split()).strip(" .,;:!?'\"“”‘’")


def topic_of(user_id: object, subject: str, predicate: str) -> str:
    """What facts that can end one another have in common, as a SHA-256.

    `user_id` is whom they are about; None for the project.
    """
    told = "\n".join((str(user_id or ""), folded(subject), folded(predicate)))
    return hashlib.sha256(told.encode()).hexdigest()


class FactQuerySet(models.QuerySet["Fact"]):
    def current(self) -> "FactQuerySet":
        """As they are now: no earlier versions, and none that was taken back."""
        return self.filter(retired_at=None)

    def recorded_at(self, moment: datetime) -> "FactQuerySet":
        """Those, and those versions of them, that the project held at `moment`."""
        return self.filter(Q(retired_at=None) | Q(retired_at__gt=moment), recorded_at__lte=moment)

    def standing(self) -> "FactQuerySet":
        """Those that are taken in, and said by hand or in a summary that is neither hidden nor
        withheld.
        """
        # An earlier version has the sources of its fact.
        fact = Coalesce(OuterRef("earlier_of"), OuterRef("pk"))
        told = FactSource.objects.filter(
            project=OuterRef("project"), fact=fact, entry__withheld=False
        )
        return self.filter(
            Q(by_hand=True) | Exists(told.exclude(entry__state=State.HIDDEN)),
            state=Standing.LIVE,
        )

    def known(self, moment: datetime | None = None) -> "FactQuerySet":
        """Those that stand, as known now or at `moment`, with `until`, the end of each, and
        `closer`, the id of the fact that ended it; both None where there is none.
        """
        held = Fact.objects.standing()
        held = held.current() if moment is None else held.recorded_at(moment)
        later = held.filter(
            project=OuterRef("project"),
            topic=OuterRef("topic"),
            valid_from__gt=OuterRef("valid_from"),
        ).order_by("valid_from", "pk")
        mine = self.standing()
        mine = mine.current() if moment is None else mine.recorded_at(moment)
        return mine.annotate(
            begun=Subquery(later.values("valid_from")[:1]),
            closer=Subquery(later.values("pk")[:1]),
            # LEAST leaves out what is null.
            until=Least(F("valid_until"), F("begun")),
        )

    def valid_at(self, moment: datetime) -> "FactQuerySet":
        """Of those of `known`, what is so at `moment`."""
        return self.filter(Q(until=None) | Q(until__gt=moment), valid_from__lte=moment)

    def about(self, subject: str) -> "FactQuerySet":
        return self.filter(subject_key=folded(subject)[:LONGEST_SUBJECT])

    def saying(self, predicate: str) -> "FactQuerySet":
        return self.filter(predicate_key=folded(predicate)[:LONGEST_PREDICATE])

    def matching(self, text: str) -> "FactQuerySet":
        """Those with the words of `text`, as people write them into a search."""
        query = SearchQuery(text.replace("\0", ""), config="simple", search_type="websearch")
        return self.alias(words=WORDS).filter(words=query)

    def newest_first(self) -> "FactQuerySet":
        return self.order_by("-valid_from", "-id")


class Fact(OfProject):
    """`subject` `predicate` `object`, of the project or about one of its people.

    Facts of one topic follow one another. `valid_until` is an end that somebody gave; most have
    none. What was changed stays as an earlier version: a row with `retired_at`, below the fact.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # Other indexes begin with it.
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="facts", db_index=False
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="Whom alone it is about and shown to; empty: the project.",
    )
    subject = models.CharField(max_length=LONGEST_SUBJECT)
    predicate = models.CharField(max_length=LONGEST_PREDICATE)
    object = models.CharField(max_length=LONGEST_OBJECT)
    subject_key = models.CharField(max_length=LONGEST_SUBJECT, editable=False)
    predicate_key = models.CharField(max_length=LONGEST_PREDICATE, editable=False)
    topic = models.CharField(max_length=64, editable=False)
    confidence = models.FloatField(default=1.0, help_text="From 0 to 1.")
    valid_from = models.DateTimeField()
    valid_until = models.DateTimeField(
        null=True, blank=True, help_text="An end that somebody gave. The next fact ends it, too."
    )
    recorded_at = models.DateTimeField(default=timezone.now)
    retired_at = models.DateTimeField(
        null=True, blank=True, help_text="When the project ceased to hold it so."
    )
    earlier_of = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="earlier",
        help_text="The fact that this is an earlier version of.",
    )
    state = models.CharField(max_length=8, choices=Standing.choices, default=Standing.LIVE)
    waits_because = models.CharField(
        max_length=12, choices=Waiting.choices, blank=True, help_text="Why it awaits review."
    )
    by_hand = models.BooleanField(
        default=False, help_text="Somebody gave it: it stands without a source."
    )
    written_by = models.CharField(max_length=200, help_text="The model, or who wrote it.")
    version = models.PositiveIntegerField(default=1)

    objects = FactQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=Standing.values), name="fact_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(confidence__gte=0, confidence__lte=1), name="fact_confidence_is_a_share"
            ),
            models.CheckConstraint(
                condition=Q(valid_until=None) | Q(valid_until__gt=F("valid_from")),
                name="fact_ends_after_it_begins",
            ),
            models.UniqueConstraint(
                fields=["project", "earlier_of", "version"], name="one_fact_a_version"
            ),
        ]
        indexes = [
            models.Index(fields=["project", "topic", "valid_from"], name="fact_of_topic"),
            models.Index(fields=["project", "-valid_from", "-id"], name="fact_recent"),
            models.Index(fields=["project", "subject_key"], name="fact_of_subject"),
            GinIndex(WORDS, name="fact_words"),
        ]

    def __str__(self) -> str:
        return f"fact {self.pk}"

    @property
    def text(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"

    def set_keys(self) -> None:
        """Sets what is worked out from the words."""
        self.subject_key = folded(self.subject)[:LONGEST_SUBJECT]
        self.predicate_key = folded(self.predicate)[:LONGEST_PREDICATE]
        self.topic = topic_of(self.user_id, self.subject, self.predicate)

    def says_the_same(self, object: str) -> bool:
        return folded(self.object) == folded(object)


class FactSource(OfProject):
    """A message that tells a fact, and the entry in whose writing that was found.

    `valid_from` and `confidence` are what it tells of them: the fact begins with its first source,
    and is as certain as its most certain.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    fact = models.ForeignKey(Fact, on_delete=models.CASCADE, related_name="sources")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="+")
    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, related_name="fact_sources")
    valid_from = models.DateTimeField()
    confidence = models.FloatField()
    found_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["valid_from", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "fact", "message"], name="one_source_a_fact_and_message"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.message_id} tells {self.fact_id}"
