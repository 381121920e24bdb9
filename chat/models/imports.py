"""Uploaded files of conversations, and the messages that each of them added."""

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from chat.models.messages import Message
from chat.models.sessions import Session
from projects.models import IdModel, ProjectScopedModel
from projects.models.keys import parent_key, project_key, user_key


class ImportState(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


def stored_at(upload: "Import", name: str) -> str:
    return f"imports/{upload.project_id}/{upload.pk}"


class ImportQuerySet(models.QuerySet["Import"]):
    def with_messages(self) -> "ImportQuerySet":
        """Return the imports of which some added messages still exist."""
        return self.filter(Exists(_stretches_of_import()))

    def only_by(self, user) -> "ImportQuerySet":
        """Return the user's imports into sessions that nobody else created or wrote in."""
        others = Message.objects.filter(session=OuterRef("session")).exclude(author=None)
        has_others = Exists(others.exclude(author=user))
        shared = _stretches_of_import().filter(~Q(session__creator=user) | has_others)
        return self.filter(~Exists(shared), user=user)


class Import(IdModel, ProjectScopedModel):
    """One uploaded file, with the progress and the result of its import."""

    project = project_key("imports")
    user = user_key("imports")
    name = models.CharField(_("name"), max_length=200)
    format = models.CharField(_("format"), max_length=20, default="auto")
    file = models.FileField(_("file"), upload_to=stored_at, max_length=200, blank=True)
    state = models.CharField(
        _("state"), max_length=10, choices=ImportState.choices, default=ImportState.WAITING
    )
    progress = models.PositiveSmallIntegerField(_("progress"), default=0, help_text=_("Percent."))
    sessions = models.PositiveIntegerField(_("chats"), default=0)
    imported = models.PositiveIntegerField(_("imported"), default=0)
    skipped = models.PositiveIntegerField(_("skipped"), default=0)
    refused = models.PositiveIntegerField(_("rejected"), default=0)
    errors = models.JSONField(_("errors"), default=list, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    objects = ImportQuerySet.as_manager()

    class Meta:
        verbose_name = _("import")
        verbose_name_plural = _("imports")
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        # Without the name, because logs cannot be redacted later.
        return f"import of {self.created_at:%Y-%m-%d %H:%M}"


def _stretches_of_import() -> "StretchQuerySet":
    """Return the stretches of the import in the outer query."""
    rows = ImportedStretch.objects.all()
    return rows.filter(project=OuterRef("project"), upload=OuterRef("pk"))


class StretchQuerySet(models.QuerySet["ImportedStretch"]):
    def of_new_sessions(self) -> "StretchQuerySet":
        """Return the stretches at the beginning of a session. Their import created the session."""
        return self.filter(first_seq=1)


class ImportedStretch(IdModel, ProjectScopedModel):
    """The messages that an import added to one session in one run, without duplicates."""

    # Without database constraints, because processes of an earlier release may still run. They
    # delete rows of the referenced tables, but do not know this table.
    project = project_key(db_index=False, db_constraint=False)
    upload = parent_key(Import, _("import"), "stretches", db_constraint=False)
    session = parent_key(Session, _("chat"), db_index=False, db_constraint=False)
    first_seq = models.PositiveIntegerField(_("first message"))
    last_seq = models.PositiveIntegerField(_("last message"))

    objects = StretchQuerySet.as_manager()

    class Meta:
        verbose_name = _("imported part of a chat")
        verbose_name_plural = _("imported parts of chats")
        constraints = [
            models.UniqueConstraint(
                fields=["project", "session", "first_seq"], name="one_import_a_stretch"
            ),
            models.CheckConstraint(
                condition=Q(last_seq__gte=models.F("first_seq")),
                name="stretch_ends_behind_its_start",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.first_seq} to {self.last_seq} of {self.session_id}"
