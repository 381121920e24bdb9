"""Serializer fields that several routes share."""

from datetime import datetime
from typing import Any

from rest_framework import serializers

from chat.importers.times import plausible_time


class TimeField(serializers.DateTimeField):
    """A time between 1970 and tomorrow."""

    def to_internal_value(self, value: Any) -> datetime:
        at = super().to_internal_value(value)
        if plausible_time(at) is None:
            raise serializers.ValidationError("This is before 1970 or after tomorrow.")
        return at
