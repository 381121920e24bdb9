"""What programs show instead of a password."""

from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from knox.models import AbstractAuthToken, AuthTokenManager, get_digest_token
from knox.settings import CONSTANTS

from projects.identifiers import new_id
from projects.models.projects import Project

SCOPES = ("read", "write", "admin")
# How exactly is known when a token was used last: no request after the first writes that.
USE_NOTED_EVERY = timedelta(minutes=1)


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

    @classmethod
    def issue(cls, user, *, expiry: datetime | None = None, **fields: Any) -> tuple["Token", str]:
        """A new token of `user`, and what a program has to show, which is told this once."""
        digest, secret = get_digest_token()
        made = cls(
            digest=digest,
            token_key=secret[: CONSTANTS.TOKEN_KEY_LENGTH],
            user=user,
            expiry=expiry,
            **fields,
        )
        made.save(force_insert=True)
        return made, secret

    @property
    def is_expired(self) -> bool:
        return self.expiry is not None and self.expiry <= timezone.now()

    def note_use(self) -> None:
        """Writes down that it is used now, unless that was written a moment ago."""
        before = self.last_used_at
        if before is None or before < timezone.now() - USE_NOTED_EVERY:
            Token.objects.filter(pk=self.pk).update(last_used_at=Now())
