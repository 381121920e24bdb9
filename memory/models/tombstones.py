"""Tombstones: records of forgotten objects, so that no restore or import brings them back."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from projects.models import IdModel, ProjectScopedModel
from projects.models.keys import project_key


class TombstoneKind(models.TextChoices):
    """The kind of the forgotten object."""

    MESSAGE = "message", _("Message")
    SESSION = "session", _("Chat")
    SOURCE = "source", _("Chat or message in another program")
    FACT = "fact", _("Fact from a chat")
    RECORD = "record", _("Fact")
    ENTRY = "entry", _("Single memory")
    UNKEPT = "unkept", _("Message excluded from memory")
    BLOCK = "block", _("Pinned text")
    UPLOAD = "upload", _("Imported file")
    FILE = "file", _("File")
    REDACTED = "redacted", _("Text removed from a memory")
    USER = "user", _("Other data of a user")
    PROJECT = "project", _("Deleted project")


class Tombstone(IdModel, ProjectScopedModel):
    """The id of a forgotten object, or a hash.

    SOURCE is a hash of ids in the program from which the object was imported. FACT is a hash of a
    session and the text of a fact. REDACTED is the id of an entry and a hash of words that may not
    return to its text. USER is the id of a user and a time. REDACTED is only in the database, and
    the tombstone of a deleted project is only in the file.
    """

    project = project_key("tombstones")
    kind = models.CharField(_("kind"), max_length=8, choices=TombstoneKind.choices)
    subject = models.CharField(
        _("ID or hash"), max_length=64, help_text=_("An id, or the SHA-256 of an id.")
    )
    at = models.DateTimeField(_("time"), default=timezone.now)

    class Meta:
        verbose_name = _("tombstone")
        verbose_name_plural = _("tombstones")
        constraints = [
            models.UniqueConstraint(
                fields=["project", "kind", "subject"], name="one_tombstone_a_subject"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"
