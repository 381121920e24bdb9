"""What people write into the memory."""

from django import forms
from django.utils.translation import gettext_lazy as _

LONGEST_SUMMARY = 5_000


class Lines(forms.CharField):
    """Text with the line ends that it is kept with, whatever a browser sends."""

    def to_python(self, value: object) -> str | None:
        text = super().to_python(value)
        return text and text.replace("\r\n", "\n")


class EntryForm(forms.Form):
    """Another text for an entry."""

    summary = Lines(
        label=_("Text"),
        max_length=LONGEST_SUMMARY,
        widget=forms.Textarea(attrs={"rows": 5, "data-grows": ""}),
        help_text=_("One point a line, each after a hyphen. The text before is kept."),
    )
