"""Admin pages of chats and messages, with actions that forget. The activity log records them."""

from collections.abc import Callable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AdminTextareaWidget
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chat.admin import MessageAdmin, SessionAdmin
from chat.conversations import edits
from chat.conversations.sessions import delete_session, update_session
from chat.forms import EMPTY_TEXT, MessageTextField
from chat.models import Message, Session
from chat.models.sessions import SessionStatus
from memory.admin.mixins import ForgetActionAdmin, ServiceForm, ServiceFormAdmin, row_action
from memory.forgetting.service import ForgetScope
from memory.models import ActivityVerb
from memory.models.activity import record_activity
from projects.core.errors import ConflictError

admin.site.unregister([Message, Session])


def recorded(verb: ActivityVerb, change: Callable[[Any], object]) -> Callable[[Any, Any], None]:
    """Return a function `(row, by)` that calls `change(row)` for a chat or message, and records
    `verb` in the activity log.
    """

    @transaction.atomic
    def run(row: Message | Session, by: Any) -> None:
        change(row)
        ids: dict[str, Any] = {"session_id": row.pk}
        if isinstance(row, Message):
            ids = {"session_id": row.session_id, "message_id": row.pk}
        record_activity(row.project_id, verb, by=by, **ids)

    return run


def close(session: Session) -> None:
    if session.status == SessionStatus.CLOSED:
        raise ConflictError(_("This chat is closed."))
    update_session(session, status=SessionStatus.CLOSED)


class MessageTextForm(ServiceForm):
    text = MessageTextField(label=_("Text"), widget=AdminTextareaWidget)

    class Meta:
        model = Message
        fields = ("text", "version")
        widgets: ClassVar[dict[str, Any]] = {"version": forms.HiddenInput}

    def clean_text(self) -> str:
        text = self.cleaned_data["text"]
        if not text.strip() and not self.instance.attachments.exists():
            raise forms.ValidationError(EMPTY_TEXT)
        return text

    def apply(self) -> None:
        if "text" in self.changed_data:
            text, version = self.cleaned_data["text"], self.cleaned_data["version"]
            recorded(ActivityVerb.EDITED, lambda row: edits.edit(row, text, self.by, version))(
                self.instance, self.by
            )


@admin.register(Message)
class ModeratedMessageAdmin(ServiceFormAdmin, ForgetActionAdmin, MessageAdmin):
    form = MessageTextForm
    fields = (
        "project",
        "session",
        "seq",
        "role",
        "author",
        "author_name",
        *MessageTextForm.Meta.fields,
        "status",
        "error",
        "remembered",
        "model",
        "input_tokens",
        "output_tokens",
        "cost",
        "first_token_ms",
        "receipt",
        "tool_calls",
        "tool_call_id",
        "lookups",
        "copied_from",
        "created_at",
        "edited_at",
        "hidden_at",
        "deleted_at",
        "forgotten_at",
    )
    readonly_fields = tuple(name for name in fields if name not in MessageTextForm.Meta.fields)
    actions = (
        row_action("hide", _("Hide"), recorded(ActivityVerb.HIDDEN, edits.hide)),
        row_action("show", _("Show again"), recorded(ActivityVerb.SHOWN, edits.show)),
        row_action(
            "delete",
            _("Delete"),
            recorded(ActivityVerb.DELETED, edits.delete),
            confirm=_(
                "The messages are removed from prompts, memory and search. An empty place stays "
                "in the chat. This cannot be undone."
            ),
        ),
        "forget",
    )
    forget_explanation = _(
        "The messages, the replies to them and everything made from them are removed from all "
        "prompts, searches and pages at once. This cannot be undone."
    )

    def forget_scope(self, row: Message) -> ForgetScope:
        return ForgetScope(message=row.pk)


@admin.register(Session)
class ModeratedSessionAdmin(ForgetActionAdmin, SessionAdmin):
    actions = (
        row_action("close", _("Close"), recorded(ActivityVerb.CHAT_CLOSED, close)),
        row_action(
            "delete",
            _("Delete"),
            recorded(ActivityVerb.DELETED, delete_session),
            confirm=_(
                "The chats disappear at once. After ten minutes they are forgotten, with "
                "everything made from them."
            ),
        ),
        "forget",
    )
    forget_explanation = _(
        "The chats, their messages and everything made from them are removed from all prompts, "
        "searches and pages at once. This cannot be undone."
    )

    def has_change_permission(self, request: HttpRequest, obj: Session | None = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    @transaction.atomic
    def save_model(self, request: HttpRequest, obj: Session, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if "status" in form.changed_data and obj.status == SessionStatus.CLOSED:
            record_activity(
                obj.project_id, ActivityVerb.CHAT_CLOSED, by=request.user, session_id=obj.pk
            )

    def forget_scope(self, row: Session) -> ForgetScope:
        return ForgetScope(session=row.pk)
