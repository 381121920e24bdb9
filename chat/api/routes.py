"""Routes of conversations in the API."""

from django.urls import path

from chat.api import attachments, imports, messages, notes, saved_prompts, sessions

urlpatterns = [
    path("projects/<slug:slug>/sessions/", sessions.SessionListView.as_view(), name="api-sessions"),
    path("projects/<slug:slug>/notes/", notes.NoteListView.as_view(), name="api-notes"),
    path("projects/<slug:slug>/notes/<uuid:pk>/", notes.NoteDetailView.as_view(), name="api-note"),
    path(
        "projects/<slug:slug>/prompts/",
        saved_prompts.SavedPromptListView.as_view(),
        name="api-saved-prompts",
    ),
    path(
        "projects/<slug:slug>/prompts/<uuid:pk>/",
        saved_prompts.SavedPromptDetailView.as_view(),
        name="api-saved-prompt",
    ),
    path("sessions/<uuid:pk>/", sessions.SessionDetailView.as_view(), name="api-session"),
    path("sessions/<uuid:pk>/restore/", sessions.RestoreView.as_view(), name="api-restore"),
    path("sessions/<uuid:pk>/close/", sessions.CloseView.as_view(), name="api-close"),
    path("sessions/<uuid:pk>/clear/", sessions.ClearView.as_view(), name="api-clear"),
    path("sessions/<uuid:pk>/share/", sessions.ShareView.as_view(), name="api-share"),
    path("sessions/<uuid:pk>/fork/", sessions.ForkView.as_view(), name="api-fork"),
    path("sessions/<uuid:pk>/prompt/", sessions.PromptView.as_view(), name="api-prompt"),
    path("sessions/<uuid:pk>/export/", sessions.ExportView.as_view(), name="api-session-export"),
    path("projects/<slug:slug>/imports/", imports.ImportListView.as_view(), name="api-imports"),
    path(
        "projects/<slug:slug>/imports/<uuid:pk>/",
        imports.ImportDetailView.as_view(),
        name="api-import",
    ),
    path("sessions/<uuid:pk>/messages/", messages.MessageListView.as_view(), name="api-messages"),
    path(
        "sessions/<uuid:pk>/attachments/",
        attachments.AttachmentListView.as_view(),
        name="api-attachments",
    ),
    path(
        "attachments/<uuid:pk>/", attachments.AttachmentDetailView.as_view(), name="api-attachment"
    ),
    path("messages/<uuid:pk>/", messages.MessageDetailView.as_view(), name="api-message"),
    path(
        "messages/<uuid:pk>/reactions/", messages.ReactionListView.as_view(), name="api-reactions"
    ),
    path(
        "messages/<uuid:pk>/regenerate/", messages.RegenerateView.as_view(), name="api-regenerate"
    ),
    path("messages/<uuid:pk>/rerun/", messages.RerunView.as_view(), name="api-rerun"),
    path("messages/<uuid:pk>/choose/", messages.ChooseView.as_view(), name="api-choose"),
    path("messages/<uuid:pk>/stop/", messages.StopView.as_view(), name="api-stop"),
    path("messages/<uuid:pk>/stream/", messages.ReplyStreamView.as_view(), name="api-stream"),
    path(
        "messages/<uuid:pk>/revisions/", messages.RevisionListView.as_view(), name="api-revisions"
    ),
    path("messages/<uuid:pk>/receipt/", messages.ReceiptView.as_view(), name="api-receipt"),
]
