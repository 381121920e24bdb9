"""Files of conversations on their way in."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from projects.identifiers import new_id
from projects.models import OfProject, Project


class ImportState(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


def stored_at(upload: "Import", name: str) -> str:
    return f"imports/{upload.project_id}/{upload.pk}"


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

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.name
