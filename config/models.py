"""Signs of life of the parts that work in the background."""

from django.db import models


class Heartbeat(models.Model):
    """When a part (worker, beat) was last known to live, by the database's clock."""

    part = models.CharField(primary_key=True, max_length=20)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.part
