"""What people write into a chat and about it."""

from django import forms
from django.utils.translation import gettext_lazy as _

from chat.models import Session, Visibility

LONGEST_MESSAGE = 500_000


class MessageForm(forms.Form):
    """Something said, kept to the letter."""

    content = forms.CharField(
        label=_("Message"),
        strip=False,
        max_length=LONGEST_MESSAGE,
        error_messages={"required": _("Write something first.")},
        widget=forms.Textarea(
            attrs={
                "rows": 2,
                "placeholder": _("Write a message…"),
                "enterkeyhint": "send",
                "autocomplete": "off",
                "data-grows": "",
            }
        ),
    )

    def clean_content(self) -> str:
        content = self.cleaned_data["content"]
        if not content.strip():
            raise forms.ValidationError(self.fields["content"].error_messages["required"])
        return content


class NewChatForm(MessageForm):
    """The first message of a chat, and who may read it."""

    visibility = forms.ChoiceField(
        label=_("Who may read this chat"),
        choices=Visibility.choices,
        initial=Visibility.PROJECT,
        required=False,
    )

    def clean_visibility(self) -> str:
        return self.cleaned_data["visibility"] or Visibility.PROJECT


class SessionForm(forms.ModelForm):
    """How a chat is called, who may read it, and whether it is remembered."""

    class Meta:
        model = Session
        fields = ("title", "visibility", "remembered", "status")
        labels = {
            "title": _("Title"),
            "visibility": _("Who may read it"),
            "remembered": _("Remember what is said from now on"),
            "status": _("Status"),
        }
        help_texts = {"remembered": ""}
