"""The search index of recall: chunks, their vectors, and the progress of indexing."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Cast
from django.utils.translation import gettext_lazy as _
from pgvector.django import HalfVectorField, HnswIndex

from chat.models import Role, Session
from memory.models.leased import LeasedModel, LeasedQuerySet
from projects.models import IdModel, Project, ProjectScopedModel
from projects.models.keys import (
    optional_parent_key,
    optional_user_key,
    parent_key,
    parent_primary_key,
    project_key,
)


class SourceType(models.TextChoices):
    TURN = "turn", "what was said"
    NOTE = "note", "a note"
    ENTRY = "entry", "a summary"
    FACT = "fact", "a fact"
    FILE = "file", "a file"

    @classmethod
    def of(cls, session: Session) -> "SourceType":
        """Return the source type of the chunks of `session`."""
        return cls.NOTE if session.is_notes else cls.TURN


# pgvector's defaults, 16 and 64, find fewer nearest vectors in a large project: docs/recall.md.
HNSW_PARAMETERS = {"m": 24, "ef_construction": 128}

# The types of chunks whose source is a session.
SESSION_SOURCES = (SourceType.TURN, SourceType.NOTE)


class Chunk(IdModel, ProjectScopedModel):
    """A unit of the search index: consecutive messages of one speaker, or part of a long message.

    A chunk is identified by its source (for a turn or note, the session) and its first `seq` in the
    source. If it grows, it is updated. Only its vectors reference it, so that the table can be
    partitioned by project.

    `terms` are hashes of the words of the text, as full-text search normalises them. The project is
    part of each hash, so that one index over all projects finds only words of one project.
    """

    project = project_key(db_index=False)
    source_type = models.CharField(_("kind of source"), max_length=10, choices=SourceType.choices)
    source = models.UUIDField(
        _("source"),
        help_text=_(
            "The session of messages, the entry of a summary, the fact, or the version of a file."
        ),
    )
    session = optional_parent_key(Session, _("chat"), "chunks")
    first_seq = models.PositiveIntegerField(_("first message"))
    last_seq = models.PositiveIntegerField(_("last message"))
    part = models.PositiveIntegerField(
        _("part"), default=0, help_text=_("The number of this part of a long message.")
    )
    role = models.CharField(_("role"), max_length=10, choices=Role.choices)
    author = optional_user_key(_("author"))
    speaker = models.CharField(_("speaker"), max_length=300)
    text = models.TextField(_("text"))
    tokens = models.PositiveIntegerField(
        _("tokens"), help_text=_("Tokens in prompts, with date and speaker (cl100k_base).")
    )
    occurred_at = models.DateTimeField(_("time"))
    language = models.CharField(
        _("language"), max_length=63, help_text=_("The text search configuration of the terms.")
    )
    terms = models.GeneratedField(
        verbose_name=_("hashes of words"),
        expression=Func("language", "project_id", "text", function="memory_terms"),
        output_field=ArrayField(models.BigIntegerField()),
        db_persist=True,
    )
    pieces = models.BinaryField(
        _("word pieces"), help_text="The word pieces; see memory.recall.wordpieces."
    )
    # Not stored: the user on whom the embedding of a new chunk is booked.
    payer_id: int | None = None

    class Meta:
        verbose_name = _("search index entry")
        verbose_name_plural = _("search index entries")
        constraints = [
            models.UniqueConstraint(
                fields=["project", "source_type", "source", "first_seq", "part"],
                name="one_chunk_a_place",
            ),
            models.CheckConstraint(
                condition=Q(source_type__in=SourceType.values), name="chunk_source_is_known"
            ),
            models.CheckConstraint(
                condition=Q(last_seq__gte=F("first_seq")), name="chunk_ends_after_it_begins"
            ),
        ]
        indexes = [
            models.Index(fields=["project", "-occurred_at"], name="chunk_recent"),
            GinIndex(fields=["terms"], name="chunk_terms", fastupdate=False),
        ]

    def __str__(self) -> str:
        return self.source_id

    @property
    def source_id(self) -> str:
        """Return the range of messages of the chunk as `source:first-last`."""
        return f"{self.source}:{self.first_seq}-{self.last_seq}"


class Vector(IdModel, ProjectScopedModel):
    """The embedding of a chunk by one embedder. Changing the embedder adds vectors.

    The column has no fixed number of dimensions. Each embedder in use has an index over its own
    vectors. Only vectors of large projects are added to the index, some time after they are
    written. Search compares other vectors one by one.
    """

    project = project_key(db_index=False)
    chunk = parent_key(Chunk, _("search index entry"), "vectors")
    embedder = models.CharField(_("embedding model"), max_length=200)
    embedding = HalfVectorField(_("vector"))
    indexed = models.BooleanField(
        _("in the index"),
        default=False,
        help_text=_("Search compares vectors outside of the index one by one."),
    )

    class Meta:
        verbose_name = _("search vector")
        verbose_name_plural = _("search vectors")
        constraints = [
            models.UniqueConstraint(
                fields=["project", "embedder", "chunk"], name="one_vector_a_chunk_and_embedder"
            )
        ]
        indexes = [
            models.Index(
                fields=["project", "embedder"], name="vector_loose", condition=Q(indexed=False)
            ),
            # For the built-in embedder. Indexes of other embedders are created on first use.
            HnswIndex(
                OpClass(
                    Cast("embedding", HalfVectorField(dimensions=256)), name="halfvec_cosine_ops"
                ),
                name="vector_static_minilm_256",
                **HNSW_PARAMETERS,
                condition=Q(embedder="static-minilm-256", indexed=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.embedder} of {self.chunk_id}"


class IndexCursorQuerySet(LeasedQuerySet):
    def due(self) -> "IndexCursorQuerySet":
        """Return the cursors whose session has changed since it was indexed."""
        return self.filter(wanted__gt=F("done"))

    def mark_changed(self) -> int:
        """Mark the sessions to be indexed from the beginning. Return their number."""
        return self.update(wanted=F("wanted") + 1, dirty_from=1, next_try_at=None)


class IndexCursor(LeasedModel):
    """The progress of indexing one session.

    Each change of the session increases `wanted`. Indexing reads `wanted` at its start, and stores
    this value in `done` at its end. If `wanted` was increased in the meantime, the cursor is due
    again.
    """

    session = parent_primary_key(Session, _("chat"), "index_cursor")
    project = project_key()
    wanted = models.PositiveBigIntegerField(
        _("changes"), default=0, help_text=_("The number of changes.")
    )
    done = models.PositiveBigIntegerField(
        _("indexed changes"), default=0, help_text=_("The number of changes that are indexed.")
    )
    dirty_from = models.PositiveIntegerField(
        _("changed from message"),
        default=1,
        help_text=_("The number of the first message that may differ from the index."),
    )
    indexed_through = models.PositiveIntegerField(_("indexed up to message"), default=0)

    objects = IndexCursorQuerySet.as_manager()

    class Meta:
        verbose_name = _("indexing progress")
        verbose_name_plural = _("indexing progress")
        indexes = [
            models.Index(
                fields=["project"], name="index_cursor_due", condition=Q(wanted__gt=F("done"))
            )
        ]

    def __str__(self) -> str:
        return f"index of {self.session_id} at {self.indexed_through}"


class Corpus(ProjectScopedModel):
    """Term statistics of a project: the number of its chunks, and of chunks that contain each term.

    The statistics are recounted from time to time. `changes` is the number of chunks written since
    the last count. A term that is not in `terms` occurs in fewer than `floor` chunks.
    """

    project = parent_primary_key(Project, _("project"), "corpus")
    chunks = models.PositiveIntegerField(_("search index entries"), default=0)
    changes = models.PositiveIntegerField(_("changes since the count"), default=0)
    terms = ArrayField(models.BigIntegerField(), verbose_name=_("hashes of words"), default=list)
    counts = ArrayField(models.IntegerField(), verbose_name=_("occurrences"), default=list)
    floor = models.PositiveIntegerField(_("fewest occurrences"), default=1)
    counted_at = models.DateTimeField(_("counted at"), null=True, blank=True)

    class Meta:
        verbose_name = _("word count")
        verbose_name_plural = _("word counts")

    def __str__(self) -> str:
        return f"corpus of {self.project_id}"
