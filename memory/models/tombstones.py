"""Tombstones: records of forgotten things, so that a restore or a re-import omits them."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from projects.core.models import new_id
from projects.models import Project, ProjectScopedModel


class TombstoneKind(models.TextChoices):
    """The kind of the forgotten thing."""

    MESSAGE = "message", _("Message")
    SESSION = "session", _("Session")
    SOURCE = "source", _("a session or message in another program")
    FACT = "fact", _("a fact, as told in a session")
    RECORD = "record", _("a fact, as it was held")
    ENTRY = "entry", _("a summary")
    UNKEPT = "unkept", _("a message that memory keeps nothing of")
    BLOCK = "block", _("a block")
    UPLOAD = "upload", _("an import")
    USER = "user", _("what a user left beside their words")
    PROJECT = "project", _("a project that was deleted")


class Tombstone(ProjectScopedModel):
    """One forgotten thing: its id, or the hash of its id in the program that it came from.

    For a user it holds the id and the time. The tombstone of a deleted project is only in the file.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="tombstones")
    kind = models.CharField(max_length=8, choices=TombstoneKind.choices)
    subject = models.CharField(max_length=64, help_text="An id, or the SHA-256 of an id.")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "kind", "subject"], name="one_tombstone_a_subject"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"
