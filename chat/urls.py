"""The pages of a project's chats."""

from django.urls import path

from chat import image_views, imports_pages, keeping_views, message_views, note_views, views

urlpatterns = [
    path("projects/<slug:slug>/", views.project, name="project"),
    path("projects/<slug:slug>/chats/", views.create, name="session-new"),
    path("projects/<slug:slug>/chats/<uuid:pk>/", views.session, name="session"),
    path("projects/<slug:slug>/chats/<uuid:pk>/messages/", views.post, name="session-post"),
    path("projects/<slug:slug>/chats/<uuid:pk>/images/", image_views.upload, name="session-images"),
    path(
        "projects/<slug:slug>/chats/<uuid:pk>/images/<uuid:image_pk>/",
        image_views.image,
        name="session-image",
    ),
    path("projects/<slug:slug>/chats/<uuid:pk>/prompt/", views.prompt, name="session-prompt"),
    path("projects/<slug:slug>/chats/<uuid:pk>/edit/", views.edit, name="session-edit"),
    path("projects/<slug:slug>/chats/<uuid:pk>/keep/", keeping_views.keep, name="session-keep"),
    path("projects/<slug:slug>/chats/<uuid:pk>/reopen/", views.reopen, name="session-reopen"),
    path("projects/<slug:slug>/chats/<uuid:pk>/events/", views.events, name="session-events"),
    path("projects/<slug:slug>/chats/<uuid:pk>/clear/", views.clear, name="session-clear"),
    path("projects/<slug:slug>/chats/<uuid:pk>/delete/", views.delete, name="session-delete"),
    path("projects/<slug:slug>/chats/<uuid:pk>/restore/", views.restore, name="session-restore"),
    path(
        "projects/<slug:slug>/chats/<uuid:pk>/export/", imports_pages.export, name="session-export"
    ),
    path("projects/<slug:slug>/notes/", note_views.notes, name="notes"),
    path("projects/<slug:slug>/imports/", imports_pages.imports, name="imports"),
    path("messages/<uuid:pk>/edit/", message_views.edit, name="message-edit"),
    path("messages/<uuid:pk>/rerun/", message_views.rerun, name="message-rerun"),
    path("messages/<uuid:pk>/delete/", message_views.delete, name="message-delete"),
    path("messages/<uuid:pk>/react/", message_views.react, name="message-react"),
    path("messages/<uuid:pk>/choose/", message_views.choose, name="message-choose"),
    path("messages/<uuid:pk>/fork/", message_views.fork, name="message-fork"),
    path("messages/<uuid:pk>/revisions/", message_views.revisions, name="message-revisions"),
    path("messages/<uuid:pk>/regenerate/", message_views.regenerate, name="message-regenerate"),
    path("messages/<uuid:pk>/stop/", message_views.stop, name="message-stop"),
    path("messages/<uuid:pk>/stream/", message_views.stream, name="reply-stream"),
]
