"""How far somebody has read."""

from django.conf import settings
from django.db import models

from chat.models.sessions import Session
from projects.identifiers import new_id
from projects.models import OfProject, Project


class Seen(OfProject):
    """The last place of a session that a user had before their eyes."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="seen")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    seq = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "session", "user"], name="one_place_a_session_and_reader"
            )
        ]

    def __str__(self) -> str:
        return f"{self.session_id} to {self.seq}"
