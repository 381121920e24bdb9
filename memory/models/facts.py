"""Facts and their sources.

A fact is bi-temporal. It is valid from `valid_from` until `valid_until` or until the next fact of
its topic begins. The project recorded it from `recorded_at` until `retired_at`. The next fact is
queried, not stored. Therefore the end stays correct if that fact is forgotten, hidden, withheld
with its summary, or recorded late.
"""

import hashlib
import unicodedata
from datetime import datetime

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db import models
from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Least
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.models import Message, Session
from memory.models.entries import Entry, EntryStatus, ReviewReason
from projects.models import IdModel, ProjectScopedModel
from projects.models.keys import optional_user_key, parent_key, project_key

MAX_SUBJECT_CHARS = 200
MAX_PREDICATE_CHARS = 100
MAX_OBJECT_CHARS = 500

FACT_SEARCH_VECTOR = SearchVector("subject", "predicate", "object", config="simple")


class FactStatus(models.TextChoices):
    PROPOSED = "proposed", _("Needs review")
    LIVE = "live", _("Active")
    HIDDEN = "hidden", _("Hidden")


def normalize_text(text: str) -> str:
    """Return the normalised form of `text`, in which subjects, predicates and objects are compared.

    It ignores case, width, the encoding of accents, extra spaces and closing punctuation.
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(plain.split()).strip(" .,;:!?'\"“”‘’")


def topic_key(user_id: object, subject: str, predicate: str) -> str:
    """Return the SHA-256 that identifies a topic. Only facts of the same topic can end each other.

    `user_id` is the user that the fact is about, None for a fact about the project.
    """
    key = "\n".join((str(user_id or ""), normalize_text(subject), normalize_text(predicate)))
    return hashlib.sha256(key.encode()).hexdigest()


class FactQuerySet(models.QuerySet["Fact"]):
    def current(self) -> "FactQuerySet":
        """Return the current versions of facts that were not retired."""
        return self.filter(retired_at=None)

    def as_of(self, moment: datetime | None) -> "FactQuerySet":
        """Return the versions of facts that were recorded at `moment`; None means now."""
        if moment is None:
            return self.current()
        return self.filter(Q(retired_at=None) | Q(retired_at__gt=moment), recorded_at__lte=moment)

    def supported(self) -> "FactQuerySet":
        """Return live facts that were entered by hand or have a source in a visible entry."""
        # Sources belong to the current version of a fact.
        fact = Coalesce(OuterRef("earlier_of"), OuterRef("pk"))
        sources = FactSource.objects.filter(
            project=OuterRef("project"), fact=fact, entry__withheld=False
        )
        return self.filter(
            Q(by_hand=True) | Exists(sources.exclude(entry__state=EntryStatus.HIDDEN)),
            state=FactStatus.LIVE,
        )

    def with_validity(self, moment: datetime | None = None) -> "FactQuerySet":
        """Return the supported facts as of `moment` (default: now), with the end of validity."""
        return self.supported().as_of(moment).with_ends(moment)

    def with_ends(self, moment: datetime | None = None) -> "FactQuerySet":
        """Annotate `until`, the end of validity as recorded at `moment` (default: now), and
        `closer`, the id of the fact that ended it. Both are None if the fact has not ended.
        """
        recorded = Fact.objects.supported().as_of(moment)
        later = recorded.filter(
            project=OuterRef("project"),
            topic=OuterRef("topic"),
            valid_from__gt=OuterRef("valid_from"),
        ).order_by("valid_from", "pk")
        return self.annotate(
            begun=Subquery(later.values("valid_from")[:1]),
            closer=Subquery(later.values("pk")[:1]),
            # LEAST ignores NULL values.
            until=Least(F("valid_until"), F("begun")),
        )

    def valid_at(self, moment: datetime) -> "FactQuerySet":
        """Return the facts that are valid at `moment`. Requires the columns of `with_validity`."""
        return self.filter(Q(until=None) | Q(until__gt=moment), valid_from__lte=moment)

    def ended_by(self, moment: datetime) -> "FactQuerySet":
        """Return facts that others ended by `moment`, newest first. Requires `with_validity`."""
        return self.filter(until__lte=moment).exclude(closer=None).order_by("-until", "pk")

    def written_only_by(self, user: AbstractBaseUser) -> "FactQuerySet":
        """Return the current versions of facts that nobody but `user` supports: all versions were
        written by `user` by hand, and no message of another author states the fact.
        """
        own = {"by_hand": True, "written_by": user.get_username()}
        versions = Fact.objects.filter(earlier_of=OuterRef("pk")).exclude(**own)
        sources = FactSource.objects.filter(fact=OuterRef("pk")).exclude(message__author=user.pk)
        return self.filter(~Exists(versions), ~Exists(sources), earlier_of=None, **own)

    def with_subject(self, subject: str) -> "FactQuerySet":
        return self.filter(subject_key=normalize_text(subject)[:MAX_SUBJECT_CHARS])

    def with_predicate(self, predicate: str) -> "FactQuerySet":
        return self.filter(predicate_key=normalize_text(predicate)[:MAX_PREDICATE_CHARS])

    def matching(self, text: str) -> "FactQuerySet":
        """Return the facts that match the search `text`."""
        query = SearchQuery(text.replace("\0", ""), config="simple", search_type="websearch")
        return self.alias(words=FACT_SEARCH_VECTOR).filter(words=query)

    def newest_first(self) -> "FactQuerySet":
        return self.order_by("-valid_from", "-id")


class Fact(IdModel, ProjectScopedModel):
    """A statement `subject` `predicate` `object` of the project, or about one of its members.

    Facts of one topic follow one another. `valid_until` is an end that a user entered; most facts
    have none. A change saves the previous content as an earlier version: a row with `retired_at`
    and `earlier_of`.
    """

    project = project_key("facts", db_index=False)
    user = optional_user_key(
        on_delete=models.CASCADE,
        help_text=_("The only user that the fact is about and shown to. Empty: the project."),
    )
    subject = models.CharField(_("subject"), max_length=MAX_SUBJECT_CHARS)
    predicate = models.CharField(_("predicate"), max_length=MAX_PREDICATE_CHARS)
    object = models.CharField(_("object"), max_length=MAX_OBJECT_CHARS)
    subject_key = models.CharField(
        _("normalised subject"), max_length=MAX_SUBJECT_CHARS, editable=False
    )
    predicate_key = models.CharField(
        _("normalised predicate"), max_length=MAX_PREDICATE_CHARS, editable=False
    )
    topic = models.CharField(_("topic"), max_length=64, editable=False)
    confidence = models.FloatField(_("confidence"), default=1.0, help_text=_("From 0 to 1."))
    valid_from = models.DateTimeField(_("valid from"))
    valid_until = models.DateTimeField(
        _("valid until"),
        null=True,
        blank=True,
        help_text=_("An end that somebody entered. The next fact of the topic also ends the fact."),
    )
    recorded_at = models.DateTimeField(_("recorded at"), default=timezone.now)
    retired_at = models.DateTimeField(
        _("replaced at"),
        null=True,
        blank=True,
        help_text=_("The time at which the project retired this version."),
    )
    earlier_of = models.ForeignKey(
        "self",
        verbose_name=_("earlier version of"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="earlier",
        help_text=_("The fact of which this is an earlier version."),
    )
    state = models.CharField(
        _("state"), max_length=8, choices=FactStatus.choices, default=FactStatus.LIVE
    )
    waits_because = models.CharField(
        _("reason for review"), max_length=12, choices=ReviewReason.choices, blank=True
    )
    by_hand = models.BooleanField(
        _("entered by hand"),
        default=False,
        help_text=_("Entered by hand: the fact needs no source."),
    )
    written_by = models.CharField(
        _("written by"), max_length=200, help_text=_("The name of the model or of the author.")
    )
    version = models.PositiveIntegerField(_("version"), default=1)

    objects = FactQuerySet.as_manager()

    class Meta:
        verbose_name = _("fact")
        verbose_name_plural = _("facts")
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=FactStatus.values), name="fact_state_is_known"
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
            GinIndex(FACT_SEARCH_VECTOR, name="fact_words"),
        ]

    def __str__(self) -> str:
        return f"fact {self.pk}"

    @property
    def text(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"

    def set_keys(self) -> None:
        """Set the columns that are computed from subject, predicate and object."""
        self.subject_key = normalize_text(self.subject)[:MAX_SUBJECT_CHARS]
        self.predicate_key = normalize_text(self.predicate)[:MAX_PREDICATE_CHARS]
        self.topic = topic_key(self.user_id, self.subject, self.predicate)

    def has_object(self, object: str) -> bool:
        return normalize_text(self.object) == normalize_text(object)


class FactSource(IdModel, ProjectScopedModel):
    """A message that states a fact, and the entry with which the fact was extracted.

    `valid_from` and `confidence` come from this message. The fact begins with its earliest source,
    and has the confidence of its most certain source.
    """

    project = project_key(db_index=False)
    fact = parent_key(Fact, _("fact"), "sources")
    session = parent_key(Session, _("chat"))
    message = parent_key(Message, _("message"))
    entry = parent_key(Entry, _("memory"), "fact_sources")
    valid_from = models.DateTimeField(_("valid from"))
    confidence = models.FloatField(_("confidence"))
    found_at = models.DateTimeField(_("found at"), default=timezone.now)

    class Meta:
        verbose_name = _("source of a fact")
        verbose_name_plural = _("sources of facts")
        ordering = ["valid_from", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "fact", "message"], name="one_source_a_fact_and_message"
            )
        ]

    def __str__(self) -> str:
        return f"{self.message_id} states {self.fact_id}"
