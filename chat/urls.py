"""The pages of a project's chats."""

from django.urls import path

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

urlpatterns = [
    path("models/", providers.model_page, name="models"),
    path("models/projects/<slug:slug>/", providers.project_models, name="project-models"),
    path("models/<uuid:pk>/remove/", providers.model_provider_remove, name="model-remove"),
    path("projects/<slug:slug>/", sessions.project_page, name="project"),
    path("projects/<slug:slug>/chats/", sessions.create, name="session-new"),
    path("projects/<slug:slug>/chats/bulk/", bulk.bulk, name="session-bulk"),
    path("projects/<slug:slug>/chats/<uuid:pk>/", sessions.session_page, name="session"),
    path("projects/<slug:slug>/chats/<uuid:pk>/messages/", sessions.post, name="session-post"),
    path("projects/<slug:slug>/chats/<uuid:pk>/images/", attachments.upload, name="session-images"),
    path(
        "projects/<slug:slug>/chats/<uuid:pk>/images/<uuid:image_pk>/",
        attachments.image,
        name="session-image",
    ),
    path(
        "projects/<slug:slug>/chats/<uuid:pk>/prompt/",
        sessions.prompt_preview,
        name="session-prompt",
    ),
    path("projects/<slug:slug>/chats/<uuid:pk>/edit/", sessions.update, name="session-edit"),
    path(
        "projects/<slug:slug>/chats/<uuid:pk>/model/",
        providers.session_model,
        name="session-model",
    ),
    path("projects/<slug:slug>/chats/<uuid:pk>/keep/", sessions.organise, name="session-keep"),
    path("projects/<slug:slug>/chats/<uuid:pk>/share/", sharing.share_link, name="session-share"),
    path("projects/<slug:slug>/shared/<str:key>/", sharing.shared_chat, name="shared-chat"),
    path("projects/<slug:slug>/chats/<uuid:pk>/reopen/", sessions.reopen, name="session-reopen"),
    path(
        "projects/<slug:slug>/chats/<uuid:pk>/events/",
        sessions.session_events,
        name="session-events",
    ),
    path("projects/<slug:slug>/chats/<uuid:pk>/clear/", sessions.clear, name="session-clear"),
    path("projects/<slug:slug>/chats/<uuid:pk>/delete/", sessions.delete, name="session-delete"),
    path("projects/<slug:slug>/chats/<uuid:pk>/restore/", sessions.restore, name="session-restore"),
    path("projects/<slug:slug>/chats/<uuid:pk>/export/", imports.export, name="session-export"),
    path("projects/<slug:slug>/notes/", notes.notes_page, name="notes"),
    path("projects/<slug:slug>/prompts/", saved_prompts.prompt_list, name="saved-prompts"),
    path(
        "projects/<slug:slug>/prompts/<uuid:pk>/",
        saved_prompts.prompt_file,
        name="saved-prompt-file",
    ),
    path("projects/<slug:slug>/imports/", imports.imports_page, name="imports"),
    path("messages/<uuid:pk>/edit/", messages.edit, name="message-edit"),
    path("messages/<uuid:pk>/rerun/", messages.rerun, name="message-rerun"),
    path("messages/<uuid:pk>/delete/", messages.delete, name="message-delete"),
    path("messages/<uuid:pk>/react/", messages.react, name="message-react"),
    path("messages/<uuid:pk>/choose/", messages.choose, name="message-choose"),
    path("messages/<uuid:pk>/fork/", messages.fork, name="message-fork"),
    path("messages/<uuid:pk>/revisions/", messages.revisions, name="message-revisions"),
    path("messages/<uuid:pk>/regenerate/", messages.regenerate, name="message-regenerate"),
    path("messages/<uuid:pk>/stop/", messages.stop, name="message-stop"),
    path("messages/<uuid:pk>/stream/", messages.stream, name="reply-stream"),
]
