"""Finds the objects that the arguments of management commands name."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from projects.models import Project


def find_user(username: str) -> Any:
    """Return the user with this username. Raises CommandError."""
    user = get_user_model().objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is no user “{username}”.")
    return user


def find_project(slug: str) -> Project:
    """Return the project with this slug. Raises CommandError."""
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        raise CommandError(f"There is no project “{slug}”.")
    return project
