"""Entries, their revisions, and the log of their states."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.models import Session
from memory.layers import bank, lines
from memory.layers.bank import BankItem
from memory.layers.lines import Line
from memory.layers.periods import LAYER_LABELS, Granularity
from projects.core.database import fetch
from projects.models import IdModel, ProjectScopedModel
from projects.models.keys import optional_parent_key, parent_key, project_key


class EntryStatus(models.TextChoices):
    PROPOSED = "proposed", _("Needs review")
    LIVE = "live", _("In use")
    ABSORBED = "absorbed", _("Merged into a later summary")
    FADED = "faded", _("Not sent (no room)")
    HIDDEN = "hidden", _("Hidden")
    STALE = "stale", _("Waiting to be rewritten")


class ReviewReason(models.TextChoices):
    """The reason why an entry or a fact awaits review."""

    PROJECT_RULE = "asked", _("New memory")
    PRIVATE = "private", _("Quotes a private chat")
    INSTRUCTIONS = "instructions", _("Contains instructions to a model")
    IMPORTED = "imported", _("Added by another program")
    SOURCES = "sources", _("May contain forgotten text")


# Plain strings, so that migrations do not depend on the enumeration.
GRANULARITIES = [granularity.value for granularity in Granularity]
CONVERSATION = Granularity.CONVERSATION.value

ENTRY_SEARCH_VECTOR = SearchVector("summary", "note", config="simple")
ENTRY_REVISION_SEARCH_VECTOR = SearchVector("summary", config="simple")


def lines_field() -> models.JSONField:
    """Return the column of the lines of a text. It can be empty, for example for texts of an older
    version of Strata.
    """
    return models.JSONField(
        _("lines"),
        default=list,
        blank=True,
        db_default=models.Value([], models.JSONField()),
        help_text=_("The lines of the text, the most important first."),
    )


class EntryQuerySet(models.QuerySet["Entry"]):
    def matching(self, text: str) -> "EntryQuerySet":
        """Return the entries that match the search `text`, without withheld ones."""
        query = SearchQuery(text.replace("\0", ""), config="simple", search_type="websearch")
        return self.alias(words=ENTRY_SEARCH_VECTOR).filter(words=query, withheld=False)

    def live(self) -> "EntryQuerySet":
        return self.filter(state=EntryStatus.LIVE)

    def bank_candidates(self) -> "EntryQuerySet":
        """Return the candidates for the rendered bank.

        These are live entries, faded entries (which may fit again), and stale entries (whose last
        text is used until the rewrite). If a digest is withheld or waits for review, its children
        are candidates instead.
        """
        # Two conditions, each with an index, because most entries of a long history match neither.
        own = self.filter(
            Q(state__in=(EntryStatus.LIVE, EntryStatus.FADED))
            | Q(state=EntryStatus.STALE, parent=None)
        )
        # A withheld entry is stale, proposed or hidden.
        outside = Q(state__in=(EntryStatus.PROPOSED, EntryStatus.HIDDEN))
        unshown = self.filter(outside | Q(state=EntryStatus.STALE, withheld=True))
        replacements = self.filter(
            state__in=(EntryStatus.STALE, EntryStatus.ABSORBED), parent__in=unshown
        )
        return self.filter(pk__in=own.values("pk").union(replacements.values("pk")), withheld=False)

    def in_layers(self) -> "EntryQuerySet":
        """Return the entries that are part of the layers: all except proposed and hidden ones."""
        return self.exclude(state__in=(EntryStatus.PROPOSED, EntryStatus.HIDDEN))

    def rewritable(self) -> "EntryQuerySet":
        """Return the digests whose children have changed since they were written."""
        return self.filter(state=EntryStatus.STALE).exclude(granularity=CONVERSATION)

    def parents_of(self, projects: Collection[UUID], entries: Collection[UUID]) -> "EntryQuerySet":
        """Return the current and former parents of `entries` in `projects`.

        A digest loses a child that is pinned or hidden. Its earlier texts may still contain the
        child's text, and so may its current text until it is rewritten.
        """
        # A trigger logs every parent that an entry had.
        logged = EntryState.objects.filter(project__in=projects, entry__in=entries)
        parents = logged.exclude(parent_id=None).values("parent_id")
        return self.filter(project__in=projects, pk__in=parents)

    def newest_first(self) -> "EntryQuerySet":
        return self.order_by("-last_source_at", "-id")


class Entry(IdModel, ProjectScopedModel):
    """A summary of a range of one conversation, or a digest of the entries of one period.

    A conversation entry covers the messages `first_seq` to `last_seq` of its session, or summarises
    a version of a `file`. The file then belongs to the chat `session`, or to the project if this is
    None. A digest is made from its `children`. `period_key` refers to the time zone `zone`.
    """

    project = project_key("entries")
    granularity = models.CharField(
        _("layer"),
        max_length=12,
        choices=[(layer.value, LAYER_LABELS[layer]) for layer in Granularity],
    )
    period_key = models.CharField(_("period"), max_length=10)
    zone = models.CharField(_("time zone"), max_length=64)
    session = optional_parent_key(Session, _("chat"), "entries")
    # Without an index: most entries have no file, so `entry_of_file` is smaller.
    file = models.ForeignKey(
        "FileRevision",
        verbose_name=_("file"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        help_text=_("The version of a file that it summarises."),
    )
    first_seq = models.PositiveIntegerField(_("first message"), null=True, blank=True)
    last_seq = models.PositiveIntegerField(_("last message"), null=True, blank=True)
    parent = models.ForeignKey(
        "self",
        verbose_name=_("merged into"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="children",
    )
    summary = models.TextField(_("summary"))
    lines = lines_field()
    tokens = models.PositiveIntegerField(
        _("tokens"), help_text=_("Tokens in the bank (cl100k_base).")
    )
    message_count = models.PositiveIntegerField(_("messages"))
    first_source_at = models.DateTimeField(_("first source"))
    last_source_at = models.DateTimeField(_("last source"))
    state = models.CharField(
        _("state"), max_length=10, choices=EntryStatus.choices, default=EntryStatus.LIVE
    )
    pinned = models.BooleanField(_("pinned"), default=False)
    withheld = models.BooleanField(
        _("text hidden"),
        default=False,
        help_text=_("A source was hidden, deleted or forgotten: no text until the rewrite."),
    )
    waits_because = models.CharField(
        _("reason for review"), max_length=12, choices=ReviewReason.choices, blank=True
    )
    note = models.TextField(
        _("note"),
        blank=True,
        help_text=_("A hand-written text of a digest, used as one of its sources."),
    )
    losses = models.JSONField(
        _("missing details"),
        default=list,
        blank=True,
        help_text=_("Details of the sources that are missing in the text."),
    )
    particulars = models.PositiveIntegerField(
        _("details in the sources"),
        default=0,
        help_text=_("The number of names, dates, numbers and identifiers in the sources."),
    )
    revision = models.PositiveIntegerField(_("version"), default=1)
    sources_hash = models.CharField(
        _("hash of the sources"),
        max_length=64,
        blank=True,
        help_text="A hash of the ids and revisions of the sources.",
    )
    written_by = models.CharField(
        _("written by"), max_length=200, help_text=_("The name of the model, or “extractive”.")
    )
    written_at = models.DateTimeField(_("written at"), default=timezone.now)

    objects = EntryQuerySet.as_manager()

    class Meta:
        verbose_name = _("memory")
        verbose_name_plural = _("memories")
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
                condition=Q(state__in=EntryStatus.values), name="entry_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(granularity__in=GRANULARITIES), name="entry_granularity_is_known"
            ),
            models.CheckConstraint(
                name="only_conversation_entries_cover",
                condition=Q(
                    granularity=CONVERSATION,
                    file__isnull=True,
                    session__isnull=False,
                    first_seq__isnull=False,
                    last_seq__gte=models.F("first_seq"),
                )
                | Q(
                    granularity=CONVERSATION,
                    file__isnull=False,
                    first_seq__isnull=True,
                    last_seq__isnull=True,
                )
                | Q(
                    ~Q(granularity=CONVERSATION),
                    file__isnull=True,
                    session__isnull=True,
                    first_seq__isnull=True,
                    last_seq__isnull=True,
                ),
            ),
        ]
        indexes = [
            models.Index(fields=["project", "state", "-last_source_at"], name="entry_by_state"),
            models.Index(
                fields=["project"], name="entry_stale", condition=Q(state=EntryStatus.STALE)
            ),
            models.Index(
                fields=["project"],
                name="entry_without_lines",
                condition=Q(lines=[]) & ~Q(summary=""),
            ),
            models.Index(
                fields=["project", "file"], name="entry_of_file", condition=Q(file__isnull=False)
            ),
            GinIndex(ENTRY_SEARCH_VECTOR, name="entry_words"),
        ]

    def __str__(self) -> str:
        return f"{self.get_granularity_display()} {self.period_key}"

    @property
    def label(self) -> str:
        """Return the label for pages and prompts, without the title of a private session."""
        title = "a file" if self.file_id else ""
        title = self.session.open_label if self.session is not None else title
        return bank.item_label(Granularity(self.granularity), self.period_key, title)

    @property
    def layer(self) -> Granularity:
        return Granularity(self.granularity)

    @property
    def day(self) -> date:
        """Return the day of the first source, in the time zone of the entry."""
        return timezone.localdate(self.first_source_at, ZoneInfo(self.zone))

    def read_lines(self) -> list[Line]:
        """Return the lines. If no lines are stored, split the text into lines without sources."""
        return lines.read(self.lines, self.summary, self.day)

    def set_lines(self, new: Sequence[Line], text: str | None = None) -> None:
        """Set the lines and the text, which is by default rendered from the lines."""
        self.lines = lines.to_json(new)
        self.summary = lines.as_text(new) if text is None else text

    def as_item(self) -> BankItem:
        """Return the entry as an item of the rendered bank."""
        return BankItem(
            id=self.pk,
            granularity=Granularity(self.granularity),
            label=self.label,
            lines=tuple(self.read_lines()),
            messages=self.message_count,
            last_source_at=self.last_source_at,
            pinned=self.pinned,
            stale=self.state == EntryStatus.STALE,
        )


class EntryRevision(IdModel, ProjectScopedModel):
    """An earlier text of an entry, saved when the entry was rewritten."""

    project = project_key()
    entry = parent_key(Entry, _("memory"), "revisions")
    revision = models.PositiveIntegerField(_("version"))
    summary = models.TextField(_("summary"))
    lines = lines_field()
    written_by = models.CharField(_("written by"), max_length=200)
    written_at = models.DateTimeField(_("written at"))

    class Meta:
        verbose_name = _("earlier version of a memory")
        verbose_name_plural = _("earlier versions of memories")
        ordering = ["-revision"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "entry", "revision"], name="one_text_a_revision"
            )
        ]
        indexes = [GinIndex(ENTRY_REVISION_SEARCH_VECTOR, name="entry_revision_words")]

    def __str__(self) -> str:
        return f"revision {self.revision} of {self.entry_id}"


class EntryState(ProjectScopedModel):
    """The state of an entry from `since` on, without text. A database trigger inserts the rows.

    A row is inserted whenever one of these columns changes. `since` is the time of the cycle that
    made the change (the database setting `strata.now`), or else the database clock.
    """

    id = models.BigAutoField(primary_key=True)
    project = project_key(db_constraint=False)
    entry = parent_key(Entry, _("memory"), "states", db_constraint=False)
    since = models.DateTimeField(_("since"))
    state = models.CharField(_("state"), max_length=10, choices=EntryStatus.choices)
    parent_id = models.UUIDField(_("merged into"), null=True)
    pinned = models.BooleanField(_("pinned"))
    withheld = models.BooleanField(_("text hidden"))
    revision = models.PositiveIntegerField(_("version"))

    class Meta:
        verbose_name = _("former state of a memory")
        verbose_name_plural = _("former states of memories")
        indexes = [
            models.Index(fields=["project", "entry", "-since", "-id"], name="entry_state_since")
        ]

    def __str__(self) -> str:
        return f"{self.entry_id} {self.state} since {self.since:%Y-%m-%d %H:%M}"


def set_history_clock(moment: datetime | None) -> None:
    """Set the time for later `EntryState` rows of this transaction. None restores the real time."""
    fetch("SELECT set_config('strata.now', %s, true)", [moment.isoformat() if moment else ""])


@contextmanager
def history_clock(now: datetime) -> Iterator[None]:
    """Within the block, date new `EntryState` rows at `now`, the time of the running cycle."""
    set_history_clock(now)
    yield
    set_history_clock(None)
