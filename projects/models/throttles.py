"""What was spent of a rate."""

from django.db import models


class Bucket(models.Model):
    """What a token or a user has spent of one rate, as the moment when all of it is given back.

    The generic cell rate algorithm needs no more. The table is unlogged: a crash empties it, and
    no write of it waits for the disk.
    """

    subject = models.CharField(
        primary_key=True, max_length=80, help_text="Whose, and of which rate."
    )
    # No index: a row is written at each request, and so its new version stays on its page.
    free_at = models.DateTimeField()

    class Meta:
        ordering = ["subject"]

    def __str__(self) -> str:
        return self.subject
