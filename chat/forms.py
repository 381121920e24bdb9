"""What people write into a chat and about it."""

from itertools import chain, repeat

from django import forms
from django.utils.translation import gettext_lazy as _

from chat import attachments, images, replies
from chat.models import Message, Session, Visibility
from chat.sessions import clamped

LONGEST_MESSAGE = 500_000


class Several(forms.Field):
    """A field that a form has any number of times, each cleaned by `each`."""

    widget: type[forms.Widget] = forms.MultipleHiddenInput

    def __init__(self, each: forms.Field) -> None:
        super().__init__(required=False)
        self.each = each

    def clean(self, value):
        return [self.each.clean(one) for one in value or []]


class Files(forms.FileInput):
    allow_multiple_selected = True


class ImagesField(forms.FileField):
    """Any number of images, each as (name, image made anew)."""

    def clean(self, data, initial=None) -> list[tuple[str, images.Encoded]]:
        if len(data or []) > attachments.MOST_A_MESSAGE:
            raise forms.ValidationError(attachments.TOO_MANY)
        try:
            return [(file.name, attachments.read_upload(file)) for file in data or []]
        except images.Refused as refused:
            raise forms.ValidationError(str(refused)) from refused


class MessageForm(forms.Form):
    """Something said, kept to the letter, and the images that go with it.

    `descriptions` are those of the images uploaded before, `attachments`, and then of `images`.
    """

    content = forms.CharField(
        label=_("Message"),
        strip=False,
        required=False,
        max_length=LONGEST_MESSAGE,
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

    attachments = Several(forms.UUIDField())
    images = ImagesField(
        label=_("Images"),
        required=False,
        widget=Files(attrs={"accept": "image/png,image/jpeg,image/webp,image/gif"}),
    )
    descriptions = Several(forms.CharField(required=False, max_length=1_000))

    def clean(self) -> dict[str, object]:
        said = self.cleaned_data
        pictures = said.get("attachments"), said.get("images")
        # A field that was refused says so itself.
        if not any(pictures) and not self.errors and not said["content"].strip():
            self.add_error("content", _("Write something first."))
        return said

    def ask(self, chat_session: Session, user) -> tuple[Message, Message]:
        """Says what was written, with its images. Raises attachments.Refused, and says nothing."""
        said = self.cleaned_data
        uploaded, files = said["attachments"], said["images"]
        descriptions = chain(said["descriptions"], repeat(""))
        for pk, description in zip(uploaded, descriptions, strict=False):
            attachments.describe(pk, user, description)
        kept = [
            attachments.keep(chat_session, user, name, image, description).pk
            for (name, image), description in zip(files, descriptions, strict=False)
        ]
        return replies.ask(chat_session, said["content"], user, attachments=[*uploaded, *kept])


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


class EditForm(forms.Form):
    """Another text for a message, and the version of it that its editor read."""

    content = forms.CharField(
        label=_("Message"),
        strip=False,
        max_length=LONGEST_MESSAGE,
        widget=forms.Textarea(attrs={"rows": 3, "data-grows": ""}),
        error_messages={"required": _("Write something first.")},
    )
    version = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)

    def clean_content(self) -> str:
        content = self.cleaned_data["content"]
        if not content.strip():
            raise forms.ValidationError(self.fields["content"].error_messages["required"])
        return content


class SessionForm(forms.ModelForm):
    """How a chat is called, who may read it, whether it is remembered, and where it stands."""

    archived = forms.BooleanField(label=_("Archived: out of the lists, but kept"), required=False)
    history_limit = forms.IntegerField(
        label=_("Messages that the model sees"),
        required=False,
        help_text=_("From 50 to 1000. Empty: as the project has it."),
    )

    class Meta:
        model = Session
        fields = ("title", "visibility", "status", "history_limit", "remembered", "pinned")
        labels = {
            "title": _("Title"),
            "visibility": _("Who may read it"),
            "remembered": _("Remember what is said from now on"),
            "pinned": _("Pinned: first in the lists"),
            "status": _("Status"),
        }
        help_texts = {"remembered": ""}

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.initial["archived"] = self.instance.archived_at is not None
        # What changed is told from what the page showed: an old page does not undo what somebody
        # else saved meanwhile.
        for field in self.fields.values():
            field.show_hidden_initial = True

    def changes(self) -> dict[str, object]:
        """What the reader of the page changed on it, for `chat.sessions.update_session`."""
        return {name: self.cleaned_data[name] for name in self.changed_data}

    def clean_history_limit(self) -> int | None:
        return clamped(self.cleaned_data["history_limit"])
