"""Shared parts of the memory API."""

from datetime import UTC, datetime, time

from django.utils.dateparse import parse_date, parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from projects.models import MemberRole, Membership, Project
from projects.permissions import WRITERS, membership, require_active

AS_OF = OpenApiParameter(
    "as_of",
    OpenApiTypes.DATETIME,
    description="The state at that time (for a date, at its end), without text forgotten since.",
)


class MembershipMixin:
    """Sets `self.membership`. Members may read; editors and owners may write."""

    membership: Membership

    def initial(self, request, *args, **kwargs) -> None:
        super().initial(request, *args, **kwargs)  # type: ignore[misc]
        # A method without a handler answers 405 to every member.
        is_write = request.method not in SAFE_METHODS and hasattr(self, request.method.lower())
        roles = WRITERS if is_write else MemberRole.values
        self.membership = membership(request.user, kwargs["slug"], roles, request.auth)
        if is_write:
            require_active(self.membership.project)
        # Saves a query for the user.
        self.membership.user = request.user


def moment_parameter(request: Request, name: str, project: Project) -> datetime | None:
    """Return the time in the query parameter `name`; None if it is missing.

    A date means the end of that day. A time without an offset is in the project's time zone. Raises
    ValidationError.
    """
    value = request.query_params.get(name, "")
    if not value:
        return None
    try:
        day = parse_date(value)
        moment = datetime.combine(day, time.max) if day else parse_datetime(value)
    except ValueError:
        moment = None
    if moment is None:
        raise ValidationError({name: ["Give a date or a time as in ISO 8601."]})
    moment = moment if moment.tzinfo else moment.replace(tzinfo=project.zone)
    try:
        # PostgreSQL rejects offsets of more than sixteen hours.
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValidationError({name: ["Give a moment between the years 1 and 9999."]}) from error
