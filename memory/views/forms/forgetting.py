"""Forms of a forget request."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from memory.forgetting.service import ForgetScope
from memory.forgetting.users import find_user
from memory.views.forms.entries import reason_field, sources_field
from projects.models import Project


class ForgetForm(forms.Form):
    """The selection of a forget request. Conditions are combined with AND."""

    message = forms.UUIDField(required=False, widget=forms.HiddenInput)
    session = forms.UUIDField(required=False, widget=forms.HiddenInput)
    entry = forms.UUIDField(required=False, widget=forms.HiddenInput)
    fact = forms.UUIDField(required=False, widget=forms.HiddenInput)
    upload = forms.UUIDField(required=False, widget=forms.HiddenInput)
    file = forms.UUIDField(required=False, widget=forms.HiddenInput)
    user = forms.CharField(
        label=_("All messages from"),
        required=False,
        max_length=150,
        widget=forms.TextInput(
            attrs={"autocapitalize": "none", "autocomplete": "off", "list": "people"}
        ),
        help_text=_("A username. The replies are also forgotten."),
    )
    before = forms.DateTimeField(
        label=_("All messages before"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text=_("In the project’s time zone."),
    )
    sources = sources_field()
    replies = forms.BooleanField(
        label=_("Also forget replies that used the forgotten text, and everything based on them"),
        required=False,
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project = project

    @property
    def asks_for_sources(self) -> bool:
        """True if the valid form names an entry or fact. The page then asks whether to keep its
        source messages.
        """
        return bool(self.cleaned_data["entry"] or self.cleaned_data["fact"])

    def clean_user(self):
        """Return the user; None if the field is empty."""
        name = self.cleaned_data["user"]
        if not name:
            return None
        user = find_user(self.project, name)
        if user is None:
            raise forms.ValidationError(_("No member or author has this username."))
        return user

    def clean_before(self) -> datetime | None:
        """Return the time in the project's zone, in which the page shows it."""
        before: datetime | None = self.cleaned_data["before"]
        try:
            return before and before.astimezone(self.project.zone)
        except OverflowError as error:
            message = self.fields["before"].error_messages["invalid"]
            raise forms.ValidationError(message) from error

    def clean(self) -> dict[str, Any]:
        if not self.errors and self.scope().is_empty:
            raise forms.ValidationError(_("Choose a person, a date, or both."))
        return self.cleaned_data

    def scope(self) -> ForgetScope:
        user = self.cleaned_data["user"]
        changes = {"user": user.pk if user else None, "sources": bool(self.cleaned_data["sources"])}
        return ForgetScope(**{**self.cleaned_data, **changes})


class ForgetReasonForm(forms.Form):
    reason = reason_field()
