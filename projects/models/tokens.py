"""What programs show instead of a password."""

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from knox.models import AbstractAuthToken, AuthTokenManager

from projects.identifiers import new_id
from projects.models.projects import Project

SCOPES = ("read", "write", "admin")


def validate_scopes(scopes: object) -> None:
    if not isinstance(scopes, list) or not scopes or not set(scopes) <= set(SCOPES):
        raise ValidationError(f"Scopes are one or more of {', '.join(SCOPES)}.")


def all_scopes() -> list[str]:
    return list(SCOPES)


class TokenQuerySet(models.QuerySet["Token"]):
    def valid(self) -> "TokenQuerySet":
        """Those that open something now: not expired, of somebody who may still sign in."""
        lasting = Q(expiry=None) | Q(expiry__gt=Now())
        return self.filter(lasting, user__is_active=True)


class Token(AbstractAuthToken):
    """What a program shows instead of a password. Only a digest of it is kept."""

    name = models.CharField(max_length=120, blank=True)
    project = models.ForeignKey(
        Project,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The one project it opens. Empty: all of the user's.",
    )
    scopes = models.JSONField(default=all_scopes, validators=[validate_scopes])
    public_id = models.UUIDField(
        default=new_id,
        unique=True,
        editable=False,
        help_text="What it is called where its digest is nobody's business.",
    )
    last_used_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="To the minute."
    )

    objects = AuthTokenManager.from_queryset(TokenQuerySet)()

    class Meta:
        ordering = ["-created"]

    def __str__(self) -> str:
        return self.name or f"token of {self.user}"
