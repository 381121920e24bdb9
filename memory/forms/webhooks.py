"""What owners say of a webhook in its pages."""

from django import forms
from django.utils.translation import gettext_lazy as _

from memory.models.webhooks import ANNOUNCED
from memory.webhooks.registering import Refused, check_url
from projects.outbound import MAX_URL_LENGTH


class WebhookForm(forms.Form):
    url = forms.CharField(
        label=_("Address"),
        max_length=MAX_URL_LENGTH,
        widget=forms.URLInput(attrs={"placeholder": "https://", "autocomplete": "off"}),
        help_text=_("Of a program that takes POST requests, on the public internet."),
    )
    events = forms.MultipleChoiceField(
        label=_("What it is told"), choices=ANNOUNCED, widget=forms.CheckboxSelectMultiple
    )

    def clean_url(self) -> str:
        try:
            return check_url(self.cleaned_data["url"])
        except Refused as refused:
            raise forms.ValidationError(str(refused)) from refused
