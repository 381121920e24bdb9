"""Files of a project: documents, their versions, and the passages that were read from them."""

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.models import Session, Visibility
from memory.models.leased import LeasedModel, LeasedQuerySet
from projects.models import IdModel, ProjectScopedModel
from projects.models.keys import optional_parent_key, optional_user_key, parent_key, project_key

MAX_FILE_NAME_CHARS = 200


class FileState(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    READING = "reading", _("Reading")
    INDEXING = "indexing", _("Indexing")
    READY = "ready", _("Ready")
    FAILED = "failed", _("Failed")


UNFINISHED_STATES = (FileState.WAITING, FileState.READING, FileState.INDEXING)


class FileQuerySet(models.QuerySet["File"]):
    def visible_to(self, user) -> "FileQuerySet":
        """Return the files of the user's projects, and of chats that the user may read."""
        shared = Q(session__visibility=Visibility.PROJECT) | Q(session__creator=user)
        return self.filter(
            Q(session=None) | Q(shared, session__deleted_at=None), project__memberships__user=user
        )

    def newest_first(self) -> "FileQuerySet":
        return self.order_by("-changed_at", "-id")


class File(IdModel, ProjectScopedModel):
    """A document of a project, or of one chat if `session` is set.

    Its versions are its revisions. Search finds the passages of the latest revision that is ready.
    """

    project = project_key("files", db_index=False)
    session = optional_parent_key(
        Session,
        _("chat"),
        "files",
        help_text=_("The only chat that has the file. Empty: the whole project."),
    )
    name = models.CharField(_("name"), max_length=MAX_FILE_NAME_CHARS)
    added_by = optional_user_key(_("added by"))
    uses = models.PositiveIntegerField(
        _("uses"),
        default=0,
        db_default=0,
        help_text=_("The number of prompts that contained a passage."),
    )
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    changed_at = models.DateTimeField(
        _("changed at"), default=timezone.now, help_text=_("When its version was added.")
    )

    objects = FileQuerySet.as_manager()

    class Meta:
        verbose_name = _("file")
        verbose_name_plural = _("files")
        constraints = [
            models.UniqueConstraint(
                fields=["project", "session", "name"], name="one_file_a_name", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        # Without the name, because logs cannot be redacted later.
        return f"file of {self.created_at:%Y-%m-%d %H:%M}"


def stored_at(revision: "FileRevision", name: str) -> str:
    """Return a path made of the project and the id. The uploaded file's name is never used on
    disk.
    """
    return f"files/{revision.project_id}/{revision.pk}"


class FileRevisionQuerySet(LeasedQuerySet):
    def unfinished(self) -> "FileRevisionQuerySet":
        """Return the revisions that must still be read or indexed."""
        return self.filter(state__in=UNFINISHED_STATES)


class FileRevision(IdModel, LeasedModel):
    """One version of a file: its bytes, and the progress of reading and indexing them.

    `reason` is the code of the reason why it could not be read. `warnings` are codes about content
    that was left out. Copies of the same bytes in a project share one stored file.
    """

    project = project_key(db_index=False)
    document = parent_key(File, _("file"), "revisions")
    number = models.PositiveIntegerField(_("number"))
    media_type = models.CharField(_("media type"), max_length=100, blank=True)
    title = models.CharField(_("title"), max_length=300, blank=True)
    size = models.PositiveBigIntegerField(_("size"), help_text=_("Bytes."))
    sha256 = models.CharField(_("SHA-256"), max_length=64)
    file = models.FileField(_("file"), upload_to=stored_at, max_length=200)
    page_count = models.PositiveIntegerField(_("pages"), default=0)
    passage_count = models.PositiveIntegerField(_("passages"), default=0)
    indexed_passages = models.PositiveIntegerField(_("indexed passages"), default=0)
    state = models.CharField(
        _("state"), max_length=10, choices=FileState.choices, default=FileState.WAITING
    )
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    warnings = models.JSONField(_("warnings"), default=list, blank=True)
    added_by = optional_user_key(_("added by"))
    created_at = models.DateTimeField(_("created at"), default=timezone.now)

    objects = FileRevisionQuerySet.as_manager()

    class Meta:
        verbose_name = _("version of a file")
        verbose_name_plural = _("versions of files")
        constraints = [
            models.UniqueConstraint(
                fields=["project", "document", "number"], name="one_file_revision_a_number"
            ),
            models.CheckConstraint(
                condition=Q(state__in=FileState.values), name="file_state_is_known"
            ),
        ]
        indexes = [
            models.Index(fields=["project", "sha256"], name="file_revision_of_bytes"),
            models.Index(
                fields=["project"],
                name="file_revision_due",
                condition=Q(state__in=UNFINISHED_STATES),
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.number} of {self.document_id}"

    @property
    def progress(self) -> int:
        """The share of passages that search finds, in percent."""
        if self.state == FileState.READY:
            return 100
        return 100 * self.indexed_passages // self.passage_count if self.passage_count else 0


class FilePassage(IdModel, ProjectScopedModel):
    """A part of the text of one revision, as large as one chunk of the search index.

    The chunk of a passage has the same id. Chunks of earlier revisions are deleted. Passages are
    kept as long as the file, so that receipts of earlier replies can show them. The joined texts of
    all passages of one `section` are the text of the section.
    """

    project = project_key(db_index=False)
    revision = parent_key(FileRevision, _("version"), "passages")
    number = models.PositiveIntegerField(
        _("number"), help_text=_("The place in the document, from 1.")
    )
    section = models.PositiveIntegerField(
        _("page or section"), help_text=_("The number of its page or section, from 1.")
    )
    page = models.PositiveIntegerField(_("page"), null=True, blank=True)
    label = models.CharField(_("place"), max_length=200, blank=True, help_text=_("Such as “p. 3”."))
    headings = models.CharField(
        _("headings"),
        max_length=1_000,
        blank=True,
        help_text=_("The headings above it, as a path."),
    )
    text = models.TextField(_("text"))

    class Meta:
        verbose_name = _("passage of a file")
        verbose_name_plural = _("passages of files")
        constraints = [
            models.UniqueConstraint(
                fields=["project", "revision", "number"], name="one_file_passage_a_number"
            )
        ]
        indexes = [models.Index(fields=["project", "revision", "section"], name="passage_section")]

    def __str__(self) -> str:
        return f"passage {self.number} of {self.revision_id}"
