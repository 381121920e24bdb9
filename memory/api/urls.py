"""URLs of the memory API, below /api/v1/."""

from django.urls import include, path

from memory.api import (
    activity,
    blocks,
    costs,
    entries,
    facts,
    files,
    forgetting,
    moderation,
    profile,
    recall,
    revisions,
    summarizing,
    webhooks,
)

project = [
    path("memory/", entries.BankView.as_view(), name="api-memory"),
    path("memory/entries/", entries.EntryListView.as_view(), name="api-entries"),
    path("memory/entries/<uuid:pk>/", entries.EntryDetailView.as_view(), name="api-entry"),
    path(
        "memory/entries/<uuid:pk>/revisions/",
        revisions.EntryRevisionListView.as_view(),
        name="api-entry-revisions",
    ),
    path("memory/act/", moderation.EntryActionView.as_view(), name="api-act"),
    path("facts/contradictions/", facts.ContradictionListView.as_view(), name="api-contradictions"),
    path("facts/", facts.FactListView.as_view(), name="api-facts"),
    path("facts/<uuid:pk>/", facts.FactDetailView.as_view(), name="api-fact"),
    path("activity/", activity.ActivityListView.as_view(), name="api-activity"),
    path("activity/<uuid:pk>/", activity.ActivityDetailView.as_view(), name="api-activity-one"),
    path("limits/", costs.LimitView.as_view(), name="api-limits"),
    path("usage/", costs.UsageView.as_view(), name="api-usage"),
    path("forget/", forgetting.ForgetView.as_view(), name="api-forget"),
    path("recall/", recall.RecallView.as_view(), name="api-recall"),
    path("profile/", profile.ProfileView.as_view(), name="api-profile"),
    path("export/", profile.ProjectExportView.as_view(), name="api-export"),
    path("files/", files.FileListView.as_view(), name="api-files"),
    path("files/<uuid:pk>/", files.FileDetailView.as_view(), name="api-file"),
    path("files/<uuid:pk>/text/", files.FileTextView.as_view(), name="api-file-text"),
    path("files/<uuid:pk>/download/", files.FileDownloadView.as_view(), name="api-file-download"),
    path("files/<uuid:pk>/retry/", files.FileRetryView.as_view(), name="api-file-retry"),
    path("blocks/", blocks.BlockListView.as_view(), name="api-blocks"),
    path("blocks/<str:name>/", blocks.BlockDetailView.as_view(), name="api-block"),
    path("webhooks/", webhooks.WebhookListView.as_view(), name="api-webhooks"),
    path("webhooks/<uuid:pk>/", webhooks.WebhookDetailView.as_view(), name="api-webhook"),
    path(
        "webhooks/<uuid:pk>/secret/",
        webhooks.WebhookSecretView.as_view(),
        name="api-webhook-secret",
    ),
    path("webhooks/<uuid:pk>/test/", webhooks.WebhookTestView.as_view(), name="api-webhook-test"),
    path(
        "webhooks/<uuid:pk>/deliveries/", webhooks.DeliveryListView.as_view(), name="api-deliveries"
    ),
]
urlpatterns = [
    path("projects/<slug:slug>/", include(project)),
    path(
        "messages/<uuid:pk>/sources/",
        revisions.ReplySourcesView.as_view(),
        name="api-reply-sources",
    ),
    # The URL before version 0.2.
    path("messages/<uuid:pk>/told/", revisions.reply_sources_moved, name="old-api-reply-sources"),
    path("usage/", costs.OwnUsageView.as_view(), name="api-own-usage"),
    path(
        "sessions/<uuid:pk>/summarize/", summarizing.SummarizeView.as_view(), name="api-summarize"
    ),
]
