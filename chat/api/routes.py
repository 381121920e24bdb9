"""Routes of conversations in the API."""

from django.urls import include, path

from chat.api import attachments, imports, messages, notes, saved_prompts, sessions

project = [
    path("sessions/", sessions.SessionListView.as_view(), name="api-sessions"),
    path("notes/", notes.NoteListView.as_view(), name="api-notes"),
    path("notes/<uuid:pk>/", notes.NoteDetailView.as_view(), name="api-note"),
    path("prompts/", saved_prompts.SavedPromptListView.as_view(), name="api-saved-prompts"),
    path(
        "prompts/<uuid:pk>/", saved_prompts.SavedPromptDetailView.as_view(), name="api-saved-prompt"
    ),
    path("imports/", imports.ImportListView.as_view(), name="api-imports"),
    path("imports/<uuid:pk>/", imports.ImportDetailView.as_view(), name="api-import"),
]
session = [
    path("", sessions.SessionDetailView.as_view(), name="api-session"),
    path("restore/", sessions.RestoreView.as_view(), name="api-restore"),
    path("close/", sessions.CloseView.as_view(), name="api-close"),
    path("clear/", sessions.ClearView.as_view(), name="api-clear"),
    path("share/", sessions.ShareView.as_view(), name="api-share"),
    path("fork/", sessions.ForkView.as_view(), name="api-fork"),
    path("prompt/", sessions.PromptView.as_view(), name="api-prompt"),
    path("export/", sessions.ExportView.as_view(), name="api-session-export"),
    path("messages/", messages.MessageListView.as_view(), name="api-messages"),
    path("attachments/", attachments.AttachmentListView.as_view(), name="api-attachments"),
]
message = [
    path("", messages.MessageDetailView.as_view(), name="api-message"),
    path("reactions/", messages.ReactionListView.as_view(), name="api-reactions"),
    path("regenerate/", messages.RegenerateView.as_view(), name="api-regenerate"),
    path("rerun/", messages.RerunView.as_view(), name="api-rerun"),
    path("choose/", messages.ChooseView.as_view(), name="api-choose"),
    path("stop/", messages.StopView.as_view(), name="api-stop"),
    path("stream/", messages.ReplyStreamView.as_view(), name="api-stream"),
    path("revisions/", messages.RevisionListView.as_view(), name="api-revisions"),
    path("receipt/", messages.ReceiptView.as_view(), name="api-receipt"),
]
urlpatterns = [
    path("projects/<slug:slug>/", include(project)),
    path("sessions/<uuid:pk>/", include(session)),
    path(
        "attachments/<uuid:pk>/", attachments.AttachmentDetailView.as_view(), name="api-attachment"
    ),
    path("messages/<uuid:pk>/", include(message)),
]
