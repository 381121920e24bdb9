"""Admin pages of conversations. `memory.admin.conversations` adds actions for moderators."""

from typing import Any

from django.contrib import admin
from django.db.models import DecimalField
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from chat.admin.private_text import PrivateTextAdmin
from chat.conversations.sessions import update_session
from chat.models import (
    Attachment,
    FileRemoval,
    Import,
    Message,
    MessageRevision,
    ModelPrice,
    ModelProvider,
    Reaction,
    SavedPrompt,
    Seen,
    Session,
)
from projects.admin import BaseAdmin, ReadOnlyAdmin

EDITABLE_SESSION_FIELDS = ("title", "visibility", "remembered", "status", "history_limit")


@admin.register(Session)
class SessionAdmin(PrivateTextAdmin):
    session_path = ""
    list_display = (
        "title_preview",
        "project",
        "creator",
        "kind",
        "visibility",
        "status",
        "remembered",
        "last_seq",
        "last_activity_at",
    )
    list_filter = ("kind", "visibility", "status", "remembered")
    list_select_related = ("project", "creator")
    date_hierarchy = "created_at"
    ordering = ("-id",)
    show_full_result_count = False
    search_fields = ("title", "=id", "project__slug", "creator__username")
    fields = (
        "project",
        "creator",
        "kind",
        "title",
        "visibility",
        "remembered",
        "history_limit",
        "status",
        "last_seq",
        "version",
        "source_key",
        "created_at",
        "last_activity_at",
    )
    readonly_fields = tuple(name for name in fields if name not in EDITABLE_SESSION_FIELDS)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj=None) -> bool:
        return False

    @admin.display(description=_("title"))
    def title_preview(self, session: Session) -> str:
        return self.preview(session, session.label)

    def save_model(self, request, obj: Session, form, change: bool) -> None:
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        update_session(obj, by=request.user, **changes)


@admin.register(Message)
class MessageAdmin(PrivateTextAdmin, ReadOnlyAdmin):
    list_display = (
        "excerpt",
        "role",
        "author",
        "session",
        "seq",
        "status",
        "model",
        "tokens",
        "created_at",
    )
    list_filter = ("role", "status", "remembered")
    list_select_related = ("author", "session")
    date_hierarchy = "created_at"
    search_fields = ("text", "=session__id", "author__username", "author_name")

    @admin.display(description=_("text"))
    def excerpt(self, message: Message) -> str:
        return self.preview(message, message.text or message.error)


@admin.register(MessageRevision)
class MessageRevisionAdmin(PrivateTextAdmin, ReadOnlyAdmin):
    session_path = "message__session"
    list_display = ("excerpt", "version", "edited_by", "edited_at")
    list_select_related = ("edited_by", "message__session")
    date_hierarchy = "edited_at"
    search_fields = ("text", "=message__id", "edited_by__username")

    @admin.display(description=_("text"))
    def excerpt(self, revision: MessageRevision) -> str:
        return self.preview(revision, revision.text)


@admin.register(Reaction)
class ReactionAdmin(ReadOnlyAdmin):
    list_display = ("emoji", "user", "message", "created_at")
    list_select_related = ("user", "message")
    date_hierarchy = "created_at"
    search_fields = ("emoji", "=message__id", "user__username")


@admin.register(Seen)
class SeenAdmin(ReadOnlyAdmin):
    list_display = ("session", "user", "seq")
    list_select_related = ("session", "user")
    search_fields = ("=session__id", "user__username")


@admin.register(Attachment)
class AttachmentAdmin(PrivateTextAdmin, ReadOnlyAdmin):
    list_display = (
        "name_preview",
        "media_type",
        "width",
        "height",
        "size",
        "uploaded_by",
        "created_at",
    )
    list_filter = ("media_type",)
    list_select_related = ("uploaded_by", "session")
    date_hierarchy = "created_at"
    search_fields = ("name", "description", "=session__id", "sha256")
    exclude = ("file",)

    @admin.display(description=_("name"))
    def name_preview(self, attachment: Attachment) -> str:
        return self.preview(attachment, attachment.name)


@admin.register(Import)
class ImportAdmin(ReadOnlyAdmin):
    """Imports without the names of files and the errors, which may be text of private chats."""

    list_display = (
        "created_at",
        "project",
        "user",
        "format",
        "state",
        "imported",
        "refused",
    )
    list_filter = ("state", "format")
    list_select_related = ("project", "user")
    date_hierarchy = "created_at"
    search_fields = ("project__slug", "user__username")
    exclude = ("name", "file", "errors")


@admin.register(FileRemoval)
class FileRemovalAdmin(ReadOnlyAdmin):
    list_display = ("path", "attempts", "last_error", "created_at", "next_try_at", "act")
    date_hierarchy = "created_at"
    search_fields = ("=project_id", "=act", "path")


@admin.register(ModelProvider)
class ModelProviderAdmin(ReadOnlyAdmin):
    """Providers, read-only. The Models page adds and removes providers and tests their keys."""

    list_display = ("name", "kind", "address", "checked_at", "created_at")
    list_filter = ("kind",)
    search_fields = ("name", "address")
    fields = ("name", "kind", "address", "catalogue", "checked_at", "created_at")

    def view_on_site(self, provider: ModelProvider) -> str:
        return reverse("models")


@admin.register(ModelPrice)
class ModelPriceAdmin(BaseAdmin):
    """Prices that replace those in `genai-prices`. They apply to later calls."""

    list_display = ("model", "input_price", "cached_price", "output_price")
    search_fields = ("model",)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if isinstance(db_field, DecimalField):
            kwargs["min_value"] = 0
        return super().formfield_for_dbfield(db_field, request, **kwargs)


@admin.register(SavedPrompt)
class SavedPromptAdmin(ReadOnlyAdmin):
    """Saved prompts without their texts, which may be private."""

    list_display = ("name", "project", "user", "written_by", "updated_at")
    list_select_related = ("project", "user", "written_by")
    date_hierarchy = "updated_at"
    search_fields = ("name", "project__slug", "user__username")
    fields = list_display
