"""Files of conversations on their way in."""

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from chat.models.messages import Message
from chat.models.sessions import Session
from projects.identifiers import new_id
from projects.models import OfProject, Project


class ImportState(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


def stored_at(upload: "Import", name: str) -> str:
    return f"imports/{upload.project_id}/{upload.pk}"


class ImportQuerySet(models.QuerySet["Import"]):
    def kept(self) -> "ImportQuerySet":
        """Those of which something is left that they added."""
        return self.filter(Exists(_stretches()))

    def alone_of(self, user) -> "ImportQuerySet":
        """The user's, whose every conversation the user began and nobody else spoke in."""
        others = Message.objects.filter(session=OuterRef("session")).exclude(author=None)
        spoken = Exists(others.exclude(author=user))
        foreign = _stretches().filter(~Q(session__creator=user) | spoken)
        return self.filter(~Exists(foreign), user=user)


class Import(OfProject):
    """One uploaded file: how far its import is, and what it did."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="imports")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="imports"
    )
    name = models.CharField(max_length=200)
    format = models.CharField(max_length=20, default="auto")
    file = models.FileField(upload_to=stored_at, max_length=200, blank=True)
    state = models.CharField(
        max_length=10, choices=ImportState.choices, default=ImportState.WAITING
    )
    progress = models.PositiveSmallIntegerField(default=0, help_text="Percent.")
    sessions = models.PositiveIntegerField(default=0)
    imported = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    errors = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = ImportQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.name


def _stretches() -> "StretchQuerySet":
    """Of the import of the query around."""
    rows = ImportedStretch.objects.all()
    return rows.filter(project=OuterRef("project"), upload=OuterRef("pk"))


class StretchQuerySet(models.QuerySet["ImportedStretch"]):
    def whole(self) -> "StretchQuerySet":
        """Those with which a conversation began: their imports made it."""
        return self.filter(first_seq=1)


class ImportedStretch(OfProject):
    """The messages that an import added to one conversation at once. What was imported already is
    in none of its own.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # Without constraints: what served before this table came deletes rows and knows nothing of it.
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    upload = models.ForeignKey(
        Import, on_delete=models.CASCADE, related_name="stretches", db_constraint=False
    )
    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    first_seq = models.PositiveIntegerField()
    last_seq = models.PositiveIntegerField()

    objects = StretchQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "imported stretches"
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
