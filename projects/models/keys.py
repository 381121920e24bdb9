"""Columns that many models have: keys of the project, of users and of other rows."""

from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from projects.models.projects import Project

if TYPE_CHECKING:
    from django.contrib.auth.models import User

Parent = TypeVar("Parent", bound=models.Model)


def parent_key(
    parent: type[Parent], label: Any, related_name: str = "+", **options: Any
) -> "models.ForeignKey[Parent, Parent]":
    """Return the column for the row to which a row belongs. The row is deleted with it.

    Use `db_index=False` if another index or constraint begins with the column.
    """
    options = {"on_delete": models.CASCADE} | options
    return models.ForeignKey(parent, verbose_name=label, related_name=related_name, **options)


def optional_parent_key(
    parent: type[Parent], label: Any, related_name: str = "+", **options: Any
) -> "models.ForeignKey[Parent | None, Parent | None]":
    """Return the same column, which is null if a row belongs to no other row."""
    key: Any = parent_key(parent, label, related_name, **{"null": True, "blank": True} | options)
    return key


def parent_primary_key(
    parent: type[Parent], label: Any, related_name: str
) -> "models.OneToOneField[Parent, Parent]":
    """Return the primary key of rows that each extend one other row and are deleted with it."""
    return models.OneToOneField(
        parent,
        verbose_name=label,
        primary_key=True,
        on_delete=models.CASCADE,
        related_name=related_name,
    )


def project_key(related_name: str = "+", **options: Any) -> "models.ForeignKey[Project, Project]":
    """Return the column for the project of a row."""
    return parent_key(Project, _("project"), related_name, **options)


def user_key(related_name: str = "+") -> "models.ForeignKey[User, User]":
    """Return the column for the user to whom a row belongs."""
    user: Any = settings.AUTH_USER_MODEL
    return parent_key(user, _("user"), related_name)


def optional_user_key(
    label: Any = _("user"), related_name: str = "+", **options: Any
) -> "models.ForeignKey[User | None, User | None]":
    """Return a column for a user or null. By default, it becomes null when the user is deleted."""
    user: Any = settings.AUTH_USER_MODEL
    options = {"on_delete": models.SET_NULL} | options
    return optional_parent_key(user, label, related_name, **options)
