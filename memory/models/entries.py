"""What is kept: one node of the layers, and its earlier texts."""

from collections.abc import Collection
from uuid import UUID

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.models import Session
from memory.layers import bank
from memory.layers.bank import Item
from memory.layers.periods import Granularity
from projects.identifiers import new_id
from projects.models import OfProject, Project


class State(models.TextChoices):
    PROPOSED = "proposed", _("waits for review")
    LIVE = "live", _("in the prompt")
    ABSORBED = "absorbed", _("spoken for by its parent")
    FADED = "faded", _("out of the budget")
    HIDDEN = "hidden", _("hidden by a moderator")
    STALE = "stale", _("waits to be rewritten")


class Waiting(models.TextChoices):
    """Why an entry awaits review."""

    ASKED = "asked", _("the project reviews new memories")
    PRIVATE = "private", _("it quotes a private chat")
    INSTRUCTIONS = "instructions", _("it reads like instructions to a model")
    IMPORTED = "imported", _("another program remembered it")
    SOURCES = "sources", _("somebody's own words rest on what was forgotten")


# Plain strings, so that migrations do not depend on the enumeration.
GRANULARITIES = [granularity.value for granularity in Granularity]
CONVERSATION = Granularity.CONVERSATION.value
# The words by which entries, and their earlier texts, are searched.
WORDS = SearchVector("summary", "note", config="simple")
REVISED_WORDS = SearchVector("summary", config="simple")


class EntryQuerySet(models.QuerySet["Entry"]):
    def matching(self, text: str) -> "EntryQuerySet":
        """Those with the words of `text`, as people write them into a search; a text that is
        withheld is not found by what it said.
        """
        query = SearchQuery(text.replace("\0", ""), config="simple", search_type="websearch")
        return self.alias(words=WORDS).filter(words=query, withheld=False)

    def live(self) -> "EntryQuerySet":
        return self.filter(state=State.LIVE)

    def in_the_bank(self) -> "EntryQuerySet":
        """What may stand in the rendered bank.

        Live ones; faded ones, should they fit again; those about to be rewritten, which until then
        show their last text; and where a digest is withheld, or waits for review, what it was made
        of stands in.
        """
        # By two ways that an index knows: most of a long history stands in neither.
        alone = self.filter(
            Q(state__in=(State.LIVE, State.FADED)) | Q(state=State.STALE, parent=None)
        )
        # What is withheld is stale, or aside.
        aside = Q(state__in=(State.PROPOSED, State.HIDDEN))
        silent = self.filter(aside | Q(state=State.STALE, withheld=True))
        standing_in = self.filter(state__in=(State.STALE, State.ABSORBED), parent__in=silent)
        either = alone.values("pk").union(standing_in.values("pk"))
        return self.filter(pk__in=either, withheld=False)

    def in_the_layers(self) -> "EntryQuerySet":
        """What settles: all but what awaits review or was hidden."""
        return self.exclude(state__in=(State.PROPOSED, State.HIDDEN))

    def rewritable(self) -> "EntryQuerySet":
        """Digests whose children are no longer what they were written from."""
        return self.filter(state=State.STALE).exclude(granularity=CONVERSATION)

    def above(self, projects: Collection[UUID], entries: Collection[UUID]) -> "EntryQuerySet":
        """The digests that `entries` of `projects` are children of, or once were: a text of theirs,
        an earlier one or one that is not rewritten yet, may tell of a child that was pinned or put
        aside.
        """
        # The database notes each parent that an entry gets.
        held = EntryState.objects.filter(project__in=projects, entry__in=entries)
        above = held.exclude(parent_id=None).values("parent_id")
        return self.filter(project__in=projects, pk__in=above)

    def newest_first(self) -> "EntryQuerySet":
        return self.order_by("-last_source_at", "-id")


class Entry(OfProject):
    """A summary of a stretch of one conversation, or a digest of the entries of one period.

    A conversation entry covers `first_seq` to `last_seq` of its session; a digest is made of the
    entries whose `parent` it is. `period_key` is in the zone in which it was made.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="entries")
    granularity = models.CharField(max_length=12, choices=[(name, name) for name in GRANULARITIES])
    period_key = models.CharField(max_length=10)
    zone = models.CharField(max_length=64)
    session = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.CASCADE, related_name="entries"
    )
    first_seq = models.PositiveIntegerField(null=True, blank=True)
    last_seq = models.PositiveIntegerField(null=True, blank=True)
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children"
    )
    summary = models.TextField()
    tokens = models.PositiveIntegerField(help_text="Tokens of its item in the bank (cl100k_base).")
    message_count = models.PositiveIntegerField()
    first_source_at = models.DateTimeField()
    last_source_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.LIVE)
    pinned = models.BooleanField(default=False)
    withheld = models.BooleanField(
        default=False,
        help_text="A source was hidden, deleted or forgotten: no text until it is rewritten.",
    )
    waits_because = models.CharField(
        max_length=12, choices=Waiting.choices, blank=True, help_text="Why it awaits review."
    )
    note = models.TextField(
        blank=True,
        help_text="What somebody wrote into a digest by hand: it is told among its sources.",
    )
    losses = models.JSONField(
        default=list, blank=True, help_text="Particulars of its children that it does not carry."
    )
    particulars = models.PositiveIntegerField(
        default=0, help_text="Names, dates, numbers and the like that its children hold."
    )
    revision = models.PositiveIntegerField(default=1)
    sources_hash = models.CharField(
        max_length=64, blank=True, help_text="Of the ids and revisions it was written from."
    )
    written_by = models.CharField(max_length=200, help_text="The model, or extractive.")
    written_at = models.DateTimeField(default=timezone.now)

    objects = EntryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "entries"
        constraints = [
            models.UniqueConstraint(
                fields=["project", "session", "first_seq"], name="one_entry_a_stretch"
            ),
            models.UniqueConstraint(
                fields=["project", "granularity", "period_key"],
                condition=~Q(granularity=CONVERSATION),
                name="one_digest_a_period",
            ),
            models.CheckConstraint(
                condition=Q(state__in=State.values), name="entry_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(granularity__in=GRANULARITIES), name="entry_granularity_is_known"
            ),
            models.CheckConstraint(
                name="only_conversation_entries_cover",
                condition=Q(
                    granularity=CONVERSATION,
                    session__isnull=False,
                    first_seq__isnull=False,
                    last_seq__gte=models.F("first_seq"),
                )
                | Q(
                    ~Q(granularity=CONVERSATION),
                    session__isnull=True,
                    first_seq__isnull=True,
                    last_seq__isnull=True,
                ),
            ),
        ]
        indexes = [
            models.Index(fields=["project", "state", "-last_source_at"], name="entry_by_state"),
            models.Index(fields=["project"], name="entry_stale", condition=Q(state=State.STALE)),
            GinIndex(WORDS, name="entry_words"),
        ]

    def __str__(self) -> str:
        return f"{self.granularity} {self.period_key}"

    @property
    def label(self) -> str:
        """What it is called in pages and prompts; a private session's title is not told."""
        title = self.session.open_label if self.session is not None else ""
        return bank.item_label(Granularity(self.granularity), self.period_key, title)

    def as_item(self) -> Item:
        """As it may stand in the rendered bank."""
        return Item(
            id=self.pk,
            granularity=Granularity(self.granularity),
            key=self.period_key,
            label=self.label,
            summary=self.summary,
            last_source_at=self.last_source_at,
            pinned=self.pinned,
            stale=self.state == State.STALE,
        )


class EntryRevision(OfProject):
    """An earlier text of an entry, kept when it was rewritten."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, related_name="revisions")
    revision = models.PositiveIntegerField()
    summary = models.TextField()
    written_by = models.CharField(max_length=200)
    written_at = models.DateTimeField()

    class Meta:
        ordering = ["-revision"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "entry", "revision"], name="one_text_a_revision"
            )
        ]
        indexes = [GinIndex(REVISED_WORDS, name="entry_revision_words")]

    def __str__(self) -> str:
        return f"revision {self.revision} of {self.entry_id}"


class EntryState(OfProject):
    """How an entry stood from a moment on; no text. Written by the database itself.

    A trigger adds a row whenever one of these columns changes, at the moment of the cycle that did
    it (the setting `strata.now`), or at the database's own.
    """

    id = models.BigAutoField(primary_key=True)
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    entry = models.ForeignKey(
        Entry, on_delete=models.CASCADE, related_name="states", db_constraint=False
    )
    since = models.DateTimeField()
    state = models.CharField(max_length=10)
    parent_id = models.UUIDField(null=True)
    pinned = models.BooleanField()
    withheld = models.BooleanField()
    revision = models.PositiveIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["project", "entry", "-since", "-id"], name="entry_state_since")
        ]

    def __str__(self) -> str:
        return f"{self.entry_id} {self.state} since {self.since:%Y-%m-%d %H:%M}"
