"""What people write into a chat and about it."""

from itertools import chain, repeat
from typing import Any

from django import forms
from django.core.validators import MaxLengthValidator
from django.utils.translation import gettext_lazy as _

from chat import attachments, images, replies
from chat.models import Message, Session, Visibility
from chat.replies import LONGEST_MESSAGE
from chat.sessions import clamped

NOTHING = _("Write something first.")
TOO_LONG = _(
    "This is too long: it has %(show_value)d characters, and a message takes %(limit_value)d. "
    "Shorten it, or send it in parts."
)


class Words(forms.CharField):
    """What somebody says, kept to the letter.

    A box that takes no more cuts off what is pasted, unseen: the limit is the server's to tell.
    """

    def __init__(self, **kwargs) -> None:
        super().__init__(strip=False, required=False, **kwargs)
        self.validators.append(MaxLengthValidator(LONGEST_MESSAGE, TOO_LONG))

    def to_python(self, value) -> str:
        # However a line was broken, a browser sends CRLF.
        return (super().to_python(value) or "").replace("\r\n", "\n")


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

    content = Words(
        label=_("Message"),
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
            self.add_error("content", NOTHING)
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
    """The first message of a chat, who may read it, and whether it is remembered."""

    visibility = forms.ChoiceField(
        label=_("Who may read this chat"),
        choices=Visibility.choices,
        initial=Visibility.PROJECT,
        required=False,
    )
    unremembered = forms.BooleanField(label=_("Do not remember"), required=False)

    def clean_visibility(self) -> str:
        return self.cleaned_data["visibility"] or Visibility.PROJECT


class NoteForm(forms.Form):
    """A text that is written down to be remembered."""

    text = Words(
        label=_("Note"),
        widget=forms.Textarea(
            attrs={
                "rows": 3,
                "placeholder": _("Write something down…"),
                "autocomplete": "off",
            }
        ),
    )


class EditForm(forms.Form):
    """Another text for `message`, and the version of it that its editor read."""

    content = Words(label=_("Message"))
    version = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)

    def __init__(self, message: Message, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.message = message

    def clean_content(self) -> str:
        content = self.cleaned_data["content"]
        if not content.strip() and not attachments.stands_without_words(self.message):
            raise forms.ValidationError(NOTHING)
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

    def changes(self) -> dict[str, Any]:
        """What the reader of the page changed on it, for `chat.sessions.update_session`."""
        return {name: self.cleaned_data[name] for name in self.changed_data}

    def clean_history_limit(self) -> int | None:
        return clamped(self.cleaned_data["history_limit"])


class KeepForm(forms.Form):
    """Some of what SessionForm has, each by itself: what is not given stays as it is."""

    title = forms.CharField(label=_("Title"), required=False, max_length=200)
    pinned = forms.NullBooleanField()
    archived = forms.NullBooleanField()

    def changes(self) -> dict[str, Any]:
        """What was given, for `chat.sessions.update_session`."""
        return {name: value for name, value in self.cleaned_data.items() if name in self.data}
