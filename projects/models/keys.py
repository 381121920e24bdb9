"""Columns that many models have: the id, and foreign keys to the project and to users."""

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from projects.core.models import new_id

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from projects.models.projects import Project


class IdModel(models.Model):
    """A row whose primary key is a UUIDv7."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)

    class Meta:
        abstract = True


def project_key(related_name: str = "+", **options: Any) -> "models.ForeignKey[Project, Project]":
    """Return the column for the project of a row. The row is deleted with its project.

    With `db_index=False`, it has no index of its own, because other indexes or constraints begin
    with it.
    """
    return models.ForeignKey(
        "projects.Project",
        verbose_name=_("project"),
        on_delete=models.CASCADE,
        related_name=related_name,
        **options,
    )


def user_key(
    label: Any = _("user"), related_name: str = "+", on_delete: Any = models.CASCADE, **options: Any
) -> "models.ForeignKey[User, User]":
    """Return a column for a user. By default, the row is deleted with the user."""
    return models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=label,
        on_delete=on_delete,
        related_name=related_name,
        **options,
    )


def optional_user_key(
    label: Any = _("user"), on_delete: Any = models.SET_NULL, blank: bool = True, **options: Any
) -> "models.ForeignKey[User | None, User | None]":
    """Return a column for a user or null. By default, it becomes null when the user is deleted."""
    key: Any = user_key(label, on_delete=on_delete, null=True, blank=blank, **options)
    return key
