"""The pages of a project's chats."""

from django.urls import include, path

from chat.views import (
    attachments,
    bulk,
    imports,
    messages,
    notes,
    providers,
    saved_prompts,
    sessions,
    sharing,
)

chat = [
    path("", sessions.session_page, name="session"),
    path("messages/", sessions.post, name="session-post"),
    path("images/", attachments.upload, name="session-images"),
    path("images/<uuid:image_pk>/", attachments.image, name="session-image"),
    path("prompt/", sessions.prompt_preview, name="session-prompt"),
    path("edit/", sessions.update, name="session-edit"),
    path("model/", providers.session_model, name="session-model"),
    path("keep/", sessions.organise, name="session-keep"),
    path("share/", sharing.share_link, name="session-share"),
    path("reopen/", sessions.reopen, name="session-reopen"),
    path("events/", sessions.session_events, name="session-events"),
    path("clear/", sessions.clear, name="session-clear"),
    path("delete/", sessions.delete, name="session-delete"),
    path("restore/", sessions.restore, name="session-restore"),
    path("export/", imports.export, name="session-export"),
]
project = [
    path("", sessions.project_page, name="project"),
    path("chats/", sessions.create, name="session-new"),
    path("chats/bulk/", bulk.bulk, name="session-bulk"),
    path("shared/<slug:key>/", sharing.shared_chat, name="shared-chat"),
    path("notes/", notes.notes_page, name="notes"),
    path("prompts/", saved_prompts.prompt_list, name="saved-prompts"),
    path("prompts/<uuid:pk>/", saved_prompts.prompt_file, name="saved-prompt-file"),
    path("imports/", imports.imports_page, name="imports"),
]
message = [
    path("edit/", messages.edit, name="message-edit"),
    path("rerun/", messages.rerun, name="message-rerun"),
    path("delete/", messages.delete, name="message-delete"),
    path("react/", messages.react, name="message-react"),
    path("choose/", messages.choose, name="message-choose"),
    path("fork/", messages.fork, name="message-fork"),
    path("revisions/", messages.revisions, name="message-revisions"),
    path("regenerate/", messages.regenerate, name="message-regenerate"),
    path("stop/", messages.stop, name="message-stop"),
    path("stream/", messages.stream, name="reply-stream"),
]
urlpatterns = [
    path("models/", providers.model_page, name="models"),
    path("models/projects/<slug:slug>/", providers.project_models, name="project-models"),
    path("models/<uuid:pk>/remove/", providers.model_provider_remove, name="model-remove"),
    path("projects/<slug:slug>/", include(project)),
    path("projects/<slug:slug>/chats/<uuid:pk>/", include(chat)),
    path("messages/<uuid:pk>/", include(message)),
]
