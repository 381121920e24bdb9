"""Shared parts of the memory API."""

from datetime import UTC, datetime, time

from django.utils.dateparse import parse_date, parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from memory.models import ModerationReason
from projects.models import Project

AS_OF = OpenApiParameter(
    "as_of",
    OpenApiTypes.DATETIME,
    description="The state at that time (for a date, at its end), without text forgotten since.",
)


def reason_of_change() -> serializers.ChoiceField:
    return serializers.ChoiceField(
        ModerationReason.choices,
        write_only=True,
        required=False,
        help_text="The reason for the change, for the activity log.",
    )


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
