"""Moments that requests ask about."""

from datetime import UTC, datetime, time

from django.utils.dateparse import parse_date, parse_datetime
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from projects.models import Project


def moment_of(request: Request, name: str, project: Project) -> datetime | None:
    """The moment that the parameter `name` tells, in the project's zone if it names none: of a
    date its end. None where it is not given. Raises ValidationError for what is no moment.
    """
    told = request.query_params.get(name, "")
    if not told:
        return None
    try:
        day = parse_date(told)
        moment = datetime.combine(day, time.max) if day else parse_datetime(told)
    except ValueError:
        moment = None
    if moment is None:
        raise ValidationError({name: ["Give a date or a time as in ISO 8601."]})
    moment = moment if moment.tzinfo else moment.replace(tzinfo=project.zone)
    try:
        # The database takes no zone that is further off than sixteen hours.
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValidationError({name: ["Give a moment between the years 1 and 9999."]}) from error
