"""API tokens, and the buckets of rate limits."""

from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from knox.models import AbstractAuthToken, AuthTokenManager, get_digest_token
from knox.settings import CONSTANTS

from projects.core.models import new_id
from projects.models.keys import optional_parent_key, user_key
from projects.models.projects import Project

SCOPES = ("read", "write", "admin")
# The precision of `last_used_at`. It is written at most once in this time.
LAST_USED_RESOLUTION = timedelta(minutes=1)


def validate_scopes(scopes: object) -> None:
    if not isinstance(scopes, list) or not scopes or any(it not in SCOPES for it in scopes):
        raise ValidationError(f"Scopes are one or more of {', '.join(SCOPES)}.")


def all_scopes() -> list[str]:
    return list(SCOPES)


class TokenQuerySet(models.QuerySet["Token"]):
    def valid(self) -> "TokenQuerySet":
        """Return the tokens that can be used now: not expired, and of an active user."""
        return self.filter(Q(expiry=None) | Q(expiry__gt=Now()), user__is_active=True)


class Token(AbstractAuthToken):
    """An API token of a user. Only a digest of the token is stored."""

    # Fields of knox, with names that can be translated.
    user = user_key("auth_token_set")
    created = models.DateTimeField(_("created at"), auto_now_add=True)
    expiry = models.DateTimeField(_("expires at"), null=True, blank=True)
    name = models.CharField(_("name"), max_length=120, blank=True)
    project = optional_parent_key(
        Project,
        _("project"),
        help_text=_("The only project that the token may use. Empty: all projects of the user."),
    )
    scopes = models.JSONField(_("permissions"), default=all_scopes, validators=[validate_scopes])
    public_id = models.UUIDField(
        _("public ID"),
        default=new_id,
        unique=True,
        editable=False,
        help_text="The id in API responses and log lines, in place of the digest.",
    )
    last_used_at = models.DateTimeField(
        _("last used"), null=True, blank=True, editable=False, help_text=_("Rounded to the minute.")
    )

    objects = AuthTokenManager.from_queryset(TokenQuerySet)()

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        ordering = ["-created"]

    def __str__(self) -> str:
        return self.name or gettext("Token of %(user)s") % {"user": self.user}

    @classmethod
    def issue(cls, user, *, expiry: datetime | None = None, **fields: Any) -> tuple["Token", str]:
        """Create a token of `user`. Return it and its secret, which cannot be read later."""
        digest, secret = get_digest_token()
        token_key = secret[: CONSTANTS.TOKEN_KEY_LENGTH]
        token = cls(digest=digest, token_key=token_key, user=user, expiry=expiry, **fields)
        token.save(force_insert=True)
        return token, secret

    @property
    def is_expired(self) -> bool:
        return self.expiry is not None and self.expiry <= timezone.now()

    def note_use(self) -> None:
        """Set `last_used_at`, unless it was already set within `LAST_USED_RESOLUTION`."""
        last = self.last_used_at
        if last is None or last < timezone.now() - LAST_USED_RESOLUTION:
            Token.objects.filter(pk=self.pk).update(last_used_at=Now())


class Bucket(models.Model):
    """The used part of a rate limit of a token, user or network, stored as one time: the moment at
    which the whole limit is available again.

    The generic cell rate algorithm needs no other value. The table is unlogged: it is empty after
    a crash, and writes do not wait for the disk.
    """

    subject = models.CharField(
        _("holder and rate"),
        primary_key=True,
        max_length=80,
        help_text=_("The holder and the name of the rate."),
    )
    # Not indexed, because every request updates a row. Without an index, the new version of the row
    # stays on the same page.
    free_at = models.DateTimeField(_("free again at"))

    class Meta:
        verbose_name = _("rate limit")
        verbose_name_plural = _("rate limits")
        ordering = ["subject"]

    def __str__(self) -> str:
        return self.subject
