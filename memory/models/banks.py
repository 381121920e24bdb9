"""The bank as it was last rendered."""

from django.db import models

from projects.models import OfProject, Project


class RenderedBank(OfProject):
    """One project's bank as a text, and what it was rendered from.

    `version` rises only when the text changes. The text holds as long as `fingerprint` is that of
    the entries, so nobody has to tell it that something changed.
    """

    project = models.OneToOneField(
        Project, primary_key=True, on_delete=models.CASCADE, related_name="rendered_bank"
    )
    version = models.PositiveIntegerField(default=0)
    text_hash = models.CharField(max_length=64, blank=True)
    fingerprint = models.CharField(max_length=64, blank=True)
    text = models.TextField(blank=True)
    tokens = models.PositiveIntegerField(default=0)
    included = models.JSONField(default=list)
    left_out = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"version {self.version} of the bank of {self.project_id}"
