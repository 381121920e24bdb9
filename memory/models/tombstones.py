"""What must not come back."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from projects.identifiers import new_id
from projects.models import OfProject, Project


class Grave(models.TextChoices):
    """What kind of thing lies there."""

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


class Tombstone(OfProject):
    """One thing that was forgotten: its id, or the digest of what it is called at its source.

    Of a user: the id, and when. A project that was deleted has its own in the file alone.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="tombstones")
    kind = models.CharField(max_length=8, choices=Grave.choices)
    subject = models.CharField(max_length=64, help_text="An id, or a SHA-256.")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "kind", "subject"], name="one_tombstone_a_subject"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"
