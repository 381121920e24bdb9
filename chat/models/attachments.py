"""Images that were sent with a message."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from chat.models.messages import Message
from chat.models.sessions import Session
from projects.identifiers import new_id
from projects.models import OfProject, Project


def stored_at(attachment: "Attachment", name: str) -> str:
    """Under its project, by its own id: nothing of the sender's file name reaches the disk."""
    return f"attachments/{attachment.project_id}/{attachment.pk}"


class Attachment(OfProject):
    """An image as it was re-encoded here. Until its message is posted it belongs to none."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="attachments")
    message = models.ForeignKey(
        Message, null=True, blank=True, on_delete=models.CASCADE, related_name="attachments"
    )
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    name = models.CharField(max_length=200, blank=True)
    description = models.CharField(
        max_length=1_000, blank=True, help_text="For readers and models that cannot see it."
    )
    media_type = models.CharField(max_length=40)
    width = models.PositiveIntegerField(help_text="Pixels.")
    height = models.PositiveIntegerField(help_text="Pixels.")
    size = models.PositiveIntegerField(help_text="Bytes.")
    sha256 = models.CharField(max_length=64)
    file = models.FileField(upload_to=stored_at, max_length=200)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return self.name or str(self.pk)
