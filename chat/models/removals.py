"""Files that are to go from where files are kept."""

from django.db import models
from django.utils import timezone

from projects.identifiers import new_id


class FileRemoval(models.Model):
    """A file that no row names any more: written down with the row that goes, and removed itself
    when the file is gone. It names its project by the id alone: those that are deleted leave files.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project_id = models.UUIDField()
    path = models.CharField(max_length=200)
    act = models.UUIDField(null=True, blank=True, help_text="The forgetting that asked for it.")
    attempts = models.PositiveIntegerField(default=0)
    last_error = models.CharField(max_length=100, blank=True, help_text="Its class.")
    created_at = models.DateTimeField(default=timezone.now)
    next_try_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["project_id", "act"], name="file_removal_of_act"),
        ]

    def __str__(self) -> str:
        return self.path
