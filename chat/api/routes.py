"""Where conversations are in the API."""

from django.urls import path

from chat.api import attachments, exports, following, imports, messages, notes, sessions

urlpatterns = [
    path("projects/<slug:slug>/sessions/", sessions.Sessions.as_view(), name="api-sessions"),
    path("projects/<slug:slug>/notes/", notes.Notes.as_view(), name="api-notes"),
    path("projects/<slug:slug>/notes/<uuid:pk>/", notes.OneNote.as_view(), name="api-note"),
    path("sessions/<uuid:pk>/", sessions.OneSession.as_view(), name="api-session"),
    path("sessions/<uuid:pk>/restore/", sessions.Restore.as_view(), name="api-restore"),
    path("sessions/<uuid:pk>/close/", sessions.Close.as_view(), name="api-close"),
    path("sessions/<uuid:pk>/clear/", sessions.Clear.as_view(), name="api-clear"),
    path("sessions/<uuid:pk>/fork/", sessions.Fork.as_view(), name="api-fork"),
    path("sessions/<uuid:pk>/prompt/", sessions.Prompt.as_view(), name="api-prompt"),
    path("sessions/<uuid:pk>/export/", exports.Export.as_view(), name="api-session-export"),
    path("projects/<slug:slug>/imports/", imports.Imports.as_view(), name="api-imports"),
    path("projects/<slug:slug>/imports/<uuid:pk>/", imports.OneImport.as_view(), name="api-import"),
    path("sessions/<uuid:pk>/messages/", messages.Messages.as_view(), name="api-messages"),
    path(
        "sessions/<uuid:pk>/attachments/",
        attachments.Attachments.as_view(),
        name="api-attachments",
    ),
    path("attachments/<uuid:pk>/", attachments.OneAttachment.as_view(), name="api-attachment"),
    path("messages/<uuid:pk>/", messages.OneMessage.as_view(), name="api-message"),
    path("messages/<uuid:pk>/reactions/", messages.Reactions.as_view(), name="api-reactions"),
    path("messages/<uuid:pk>/regenerate/", messages.Regenerate.as_view(), name="api-regenerate"),
    path("messages/<uuid:pk>/rerun/", messages.Rerun.as_view(), name="api-rerun"),
    path("messages/<uuid:pk>/choose/", messages.Choose.as_view(), name="api-choose"),
    path("messages/<uuid:pk>/stop/", messages.Stop.as_view(), name="api-stop"),
    path("messages/<uuid:pk>/stream/", following.Follow.as_view(), name="api-stream"),
    path("messages/<uuid:pk>/revisions/", messages.Revisions.as_view(), name="api-revisions"),
    path("messages/<uuid:pk>/receipt/", messages.Receipt.as_view(), name="api-receipt"),
]
