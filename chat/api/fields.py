"""When something was said, as programs tell it."""

from datetime import datetime
from typing import Any

from rest_framework import serializers

from chat.importers.times import trusted


class TimeField(serializers.DateTimeField):
    def to_internal_value(self, value: Any) -> datetime:
        at = super().to_internal_value(value)
        if trusted(at) is None:
            raise serializers.ValidationError("Nothing was said before 1970, or after tomorrow.")
        return at
