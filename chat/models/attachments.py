"""Images of messages, and files that are still to be deleted."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.models.messages import Message
from chat.models.sessions import Session
from projects.models import IdModel, ProjectScopedModel
from projects.models.keys import optional_parent_key, optional_user_key, parent_key, project_key


def stored_at(attachment: "Attachment", name: str) -> str:
    """Return a path that consists of the ids of project and file. The name of the uploaded file is
    never used.
    """
    return f"attachments/{attachment.project_id}/{attachment.pk}"


class Attachment(IdModel, ProjectScopedModel):
    """A re-encoded image. `message` is None until a message uses it."""

    project = project_key()
    session = parent_key(Session, _("chat"), "attachments")
    message = optional_parent_key(Message, _("message"), "attachments")
    uploaded_by = optional_user_key(_("uploaded by"), blank=False)
    name = models.CharField(_("name"), max_length=200, blank=True)
    description = models.CharField(
        _("description"),
        max_length=1_000,
        blank=True,
        help_text=_("Alternative text for readers and models that cannot see the image."),
    )
    media_type = models.CharField(_("media type"), max_length=40)
    width = models.PositiveIntegerField(_("width"), help_text=_("Pixels."))
    height = models.PositiveIntegerField(_("height"), help_text=_("Pixels."))
    size = models.PositiveIntegerField(_("size"), help_text=_("Bytes."))
    sha256 = models.CharField(_("SHA-256"), max_length=64)
    file = models.FileField(_("file"), upload_to=stored_at, max_length=200)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)

    class Meta:
        verbose_name = _("image")
        verbose_name_plural = _("images")
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return self.name or str(self.pk)


class FileRemoval(IdModel):
    """A file to delete, unless a row refers to it. This row is deleted after the file.

    It is inserted in the transaction that deletes a row with the file, after a rollback, or before
    a new file is written. The project is stored as a plain id, because deleted projects leave files
    too.
    """

    project_id = models.UUIDField(_("project ID"))
    path = models.CharField(_("path"), max_length=200)
    act = models.UUIDField(
        _("forget request"),
        null=True,
        blank=True,
        help_text=_("The forget request that caused the removal."),
    )
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    last_error = models.CharField(
        _("last error"), max_length=100, blank=True, help_text=_("The class of the error.")
    )
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    next_try_at = models.DateTimeField(_("next attempt"), default=timezone.now)

    class Meta:
        verbose_name = _("file to delete")
        verbose_name_plural = _("files to delete")
        indexes = [models.Index(fields=["project_id", "act"], name="file_removal_of_act")]

    def __str__(self) -> str:
        return self.path
