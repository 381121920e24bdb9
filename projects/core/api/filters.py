"""Filters of lists. An invalid value answers 400 and is not ignored."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django_filters import fields
from django_filters import rest_framework as filters

FLAGS = {"true": True, "1": True, "false": False, "0": False}


class FlagField(forms.NullBooleanField):
    widget = forms.TextInput

    def to_python(self, value: Any) -> bool | None:  # type: ignore[override]
        if value in (None, ""):
            return None
        if str(value).lower() not in FLAGS:
            raise ValidationError("Either true or false.")
        return FLAGS[str(value).lower()]


class FlagFilter(filters.BooleanFilter):
    field_class = FlagField

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.extra.pop("widget", None)


class MomentField(fields.IsoDateTimeField):
    def to_python(self, value: Any) -> datetime | None:
        try:
            moment = super().to_python(value)
            # PostgreSQL accepts no time zone that is more than sixteen hours off.
            return moment.astimezone(UTC) if moment is not None else None
        except OverflowError as error:
            raise ValidationError("Give a moment between the years 1 and 9999.") from error


class MomentFilter(filters.IsoDateTimeFilter):
    field_class = MomentField


class WholeNumberFilter(filters.NumberFilter):
    """A number in the range of the database's integers, from 0 to 2**31 - 1."""

    field_class = forms.IntegerField

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, min_value=0, max_value=2**31 - 1, **kwargs)
