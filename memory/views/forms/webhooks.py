"""The form for a webhook."""

from django import forms
from django.utils.translation import gettext_lazy as _

from memory.models.webhooks import SUBSCRIBABLE_EVENTS
from memory.webhooks import check_url
from projects.core.errors import InvalidInputError
from projects.core.outbound_http import MAX_URL_CHARS


class WebhookForm(forms.Form):
    url = forms.CharField(
        label=_("URL"),
        max_length=MAX_URL_CHARS,
        widget=forms.URLInput(attrs={"placeholder": "https://", "autocomplete": "off"}),
        help_text=_(
            "The URL of a program that accepts POST requests. It must be on the public internet."
        ),
    )
    events = forms.MultipleChoiceField(
        label=_("Events"), choices=SUBSCRIBABLE_EVENTS, widget=forms.CheckboxSelectMultiple
    )

    def clean_url(self) -> str:
        try:
            return check_url(self.cleaned_data["url"])
        except InvalidInputError as error:
            raise forms.ValidationError(str(error)) from error
