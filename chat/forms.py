"""Forms for messages, notes and the settings of chats."""

from itertools import chain, repeat
from typing import Any

from django import forms
from django.core.validators import MaxLengthValidator
from django.db import models
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from chat import attachments
from chat.attachments import images
from chat.conversations import messages
from chat.conversations.messages import MAX_MESSAGE_CHARS
from chat.conversations.sessions import (
    clamp_history_limit,
    clean_tags,
    delete_session,
    update_session,
)
from chat.models import Message, SavedPrompt, Session, Visibility
from projects.core.errors import InvalidInputError

EMPTY_TEXT = _("Enter some text.")
TEXT_TOO_LONG = _(
    "This message is too long: %(show_value)d characters. The limit is %(limit_value)d. Shorten "
    "it, or send it in parts."
)


class MessageTextField(forms.CharField):
    """The text of a message, stored unchanged.

    The limit is checked by the server only: a `maxlength` would cut pasted text without notice.
    """

    def __init__(self, **kwargs) -> None:
        super().__init__(strip=False, required=False, **kwargs)
        self.validators.append(MaxLengthValidator(MAX_MESSAGE_CHARS, TEXT_TOO_LONG))

    def to_python(self, value) -> str:
        # Browsers send CRLF for line breaks.
        return (super().to_python(value) or "").replace("\r\n", "\n")


class RepeatedField(forms.Field):
    """A field with any number of values, each of which is cleaned by `field`."""

    widget: type[forms.Widget] = forms.MultipleHiddenInput

    def __init__(self, field: forms.Field) -> None:
        super().__init__(required=False)
        self.field = field

    def clean(self, value):
        return [self.field.clean(item) for item in value or []]


class MultipleFileInput(forms.FileInput):
    allow_multiple_selected = True


class ImagesField(forms.FileField):
    """A field for any number of images. Its value is a list of (file name, re-encoded image)."""

    def clean(self, data, initial=None) -> list[tuple[str, images.EncodedImage]]:
        if len(data or []) > attachments.MAX_IMAGES_PER_MESSAGE:
            raise forms.ValidationError(attachments.TOO_MANY_IMAGES)
        try:
            return [(file.name, attachments.read_upload(file)) for file in data or []]
        except images.ImageRejectedError as error:
            raise forms.ValidationError(str(error)) from error


class MessageForm(forms.Form):
    """A message with its images.

    `descriptions` are the descriptions of the uploads `attachments`, then those of `images`.
    """

    content = MessageTextField(
        label=_("Message"),
        widget=forms.Textarea(
            attrs={
                "rows": 2,
                "placeholder": _("Write a message…"),
                "enterkeyhint": "send",
                "autocomplete": "off",
                "data-autogrow": "",
            }
        ),
    )
    attachments = RepeatedField(forms.UUIDField())
    images = ImagesField(
        label=_("Images"),
        required=False,
        widget=MultipleFileInput(attrs={"accept": "image/png,image/jpeg,image/webp,image/gif"}),
    )
    descriptions = RepeatedField(forms.CharField(required=False, max_length=1_000))

    def clean(self) -> dict[str, object]:
        data = self.cleaned_data
        has_images = data.get("attachments") or data.get("images")
        # If a field is invalid, its own message is enough.
        if not has_images and not self.errors and not data["content"].strip():
            self.add_error("content", EMPTY_TEXT)
        return data

    def post(self, chat_session: Session, user) -> tuple[Message, Message]:
        """Post the message with its images. Return it and the pending reply.

        Raises ImageRejectedError if an image cannot be used; nothing is posted then.
        """
        data = self.cleaned_data
        uploads = data["attachments"]
        attachments.check_uploads(chat_session, uploads, user, len(data["images"]))
        descriptions = chain(data["descriptions"], repeat(""))
        for pk, description in zip(uploads, descriptions, strict=False):
            attachments.set_description(pk, user, description)
        stored = [
            attachments.store_image(chat_session, user, name, image, description).pk
            for (name, image), description in zip(data["images"], descriptions, strict=False)
        ]
        return messages.ask(chat_session, data["content"], user, attachments=[*uploads, *stored])


class ChatOptionsForm(forms.Form):
    """The visibility of a new chat, and whether it is remembered."""

    visibility = forms.ChoiceField(
        label=_("Who can read this chat"),
        choices=Visibility.choices,
        initial=Visibility.PROJECT,
        required=False,
    )
    unremembered = forms.BooleanField(label=_("Do not remember"), required=False)

    def clean_visibility(self) -> str:
        return self.cleaned_data["visibility"] or Visibility.PROJECT

    def apply_to(self, chat_session: Session) -> None:
        chat_session.visibility = self.cleaned_data["visibility"]
        chat_session.remembered = not self.cleaned_data["unremembered"]


class NewChatForm(ChatOptionsForm, MessageForm):
    """The first message of a chat, with the chat's options."""


class NoteForm(forms.Form):
    """The text of a new note."""

    text = MessageTextField(
        label=_("Note"),
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": _("Write a note…")}),
    )


class EditForm(forms.Form):
    """A new text for `message`, and the version that the editor showed."""

    content = MessageTextField(label=_("Message"))
    version = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)

    def __init__(self, message: Message, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.message = message

    def clean_content(self) -> str:
        content = self.cleaned_data["content"]
        if not content.strip() and not self.message.attachments.exists():
            raise forms.ValidationError(EMPTY_TEXT)
        return content


class SessionForm(forms.ModelForm):
    """The settings of a chat."""

    archived = forms.BooleanField(label=_("Archived (hidden from lists)"), required=False)
    history_limit = forms.IntegerField(
        label=_("Messages sent to the model"),
        required=False,
        help_text=_("50 to 1000. Leave empty to use the project setting."),
    )

    class Meta:
        model = Session
        fields = ("title", "visibility", "status", "history_limit", "remembered", "pinned")
        labels = {
            "title": _("Title"),
            "visibility": _("Who can read this chat"),
            "remembered": _("Remember new messages"),
            "pinned": _("Pinned (first in lists)"),
            "status": _("Status"),
        }
        help_texts = {"remembered": ""}

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.initial["archived"] = self.instance.archived_at is not None
        # Compare with the values that the page showed, so that an outdated page does not undo
        # changes that another member has saved.
        for field in self.fields.values():
            field.show_hidden_initial = True

    def changes(self) -> dict[str, Any]:
        """Return the changed settings, for `conversations.sessions.update_session`."""
        return {name: self.cleaned_data[name] for name in self.changed_data}

    def clean_history_limit(self) -> int | None:
        return clamp_history_limit(self.cleaned_data["history_limit"])


class BulkAction(models.TextChoices):
    ARCHIVE = "archive", _("Archive")
    UNARCHIVE = "unarchive", _("Unarchive")
    DELETE = "delete", _("Delete")


class BulkForm(forms.Form):
    """One action for several `chats`. Deleting them must be `confirmed`."""

    chats = forms.ModelMultipleChoiceField(Session.objects.none())
    action = forms.ChoiceField(choices=BulkAction.choices)
    confirmed = forms.BooleanField(required=False)

    def __init__(self, chats: QuerySet[Session], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["chats"]
        assert isinstance(field, forms.ModelMultipleChoiceField)
        field.queryset = chats

    @property
    def needs_confirmation(self) -> bool:
        data = self.cleaned_data
        return data["action"] == BulkAction.DELETE and not data["confirmed"]

    def apply(self, user) -> list[Session]:
        """Apply the action to each chat in the name of `user`. Return the chats that it changed."""
        action, changed = self.cleaned_data["action"], []
        for chat in self.cleaned_data["chats"]:
            version = chat.version
            if action == BulkAction.DELETE:
                delete_session(chat)
            else:
                update_session(chat, by=user, archived=action == BulkAction.ARCHIVE)
            if action == BulkAction.DELETE or chat.version != version:
                changed.append(chat)
        return changed


class SessionActionsForm(forms.Form):
    """Title, tags, pin and archive. Each is optional: a missing field changes nothing."""

    title = forms.CharField(label=_("Title"), required=False, max_length=200)
    tags = forms.CharField(
        label=_("Tags"),
        required=False,
        max_length=400,
        help_text=_("Separated by commas, such as billing, release."),
    )
    pinned = forms.NullBooleanField()
    archived = forms.NullBooleanField()

    def clean_tags(self) -> list[str]:
        try:
            return clean_tags(self.cleaned_data["tags"].split(","))
        except InvalidInputError as error:
            raise forms.ValidationError(str(error)) from error

    def changes(self) -> dict[str, Any]:
        """Return the submitted fields for `update_session`."""
        return {name: value for name, value in self.cleaned_data.items() if name in self.data}


class SavedPromptForm(forms.ModelForm):
    class Meta:
        model = SavedPrompt
        fields = ("name", "text")
        widgets = {"text": forms.Textarea(attrs={"rows": 6, "data-autogrow": True})}
