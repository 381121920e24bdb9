"""Spending limits of model calls: for a project, a user, an API token, or the members of a
group.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from projects.core.models import IdModel
from projects.models.projects import Project
from projects.models.tokens import Token

SUBJECTS = ("project", "user", "token", "group")
AMOUNTS = ("tokens_per_day", "tokens_per_month", "dollars_per_day", "dollars_per_month")


def _subject(model: object, **options: Any) -> models.OneToOneField:
    return models.OneToOneField(
        model,  # type: ignore[arg-type]
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        **options,
    )


def _tokens(label: object) -> models.PositiveBigIntegerField:
    return models.PositiveBigIntegerField(label, null=True, blank=True)  # type: ignore[arg-type]


def _dollars(label: object) -> models.DecimalField:
    return models.DecimalField(
        label,  # type: ignore[arg-type]
        max_digits=12,
        decimal_places=4,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
    )


class SpendingLimit(IdModel):
    """The maximum that one subject may use in a day and in a month. An empty amount means no limit.

    Days and months are in the project's time zone, otherwise in the server's. The limit of a group
    applies separately to each member who has no limit of their own.
    """

    project = _subject(Project, verbose_name=_("project"))
    user = _subject(settings.AUTH_USER_MODEL, verbose_name=_("user"))
    token = _subject(Token, verbose_name=_("API token"), to_field="public_id")
    group = _subject(Group, verbose_name=_("group"))
    tokens_per_day = _tokens(_("tokens per day"))
    tokens_per_month = _tokens(_("tokens per month"))
    dollars_per_day = _dollars(_("US dollars per day"))
    dollars_per_month = _dollars(_("US dollars per month"))

    class Meta:
        verbose_name = _("spending limit")
        verbose_name_plural = _("spending limits")
        ordering = ["pk"]

    def __str__(self) -> str:
        return str(next((getattr(self, name) for name in SUBJECTS if getattr(self, name)), self.pk))

    def clean(self) -> None:
        if sum(getattr(self, f"{name}_id") is not None for name in SUBJECTS) != 1:
            raise ValidationError(_("Choose one project, user, token or group."))

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, name) is None for name in AMOUNTS)
