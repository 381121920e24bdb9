"""URLs of the memory API, below /api/v1/."""

from django.urls import path

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

PROJECT = "projects/<slug:slug>"
ENTRIES = f"{PROJECT}/memory/entries"
FACTS = f"{PROJECT}/facts"
ACTIVITY = f"{PROJECT}/activity"
BLOCKS = f"{PROJECT}/blocks"
FILES = f"{PROJECT}/files"
WEBHOOKS = f"{PROJECT}/webhooks"
WEBHOOK = f"{WEBHOOKS}/<uuid:pk>"

urlpatterns = [
    path(f"{PROJECT}/memory/", entries.BankView.as_view(), name="api-memory"),
    path(f"{ENTRIES}/", entries.EntryListView.as_view(), name="api-entries"),
    path(f"{ENTRIES}/<uuid:pk>/", entries.EntryDetailView.as_view(), name="api-entry"),
    path(
        f"{ENTRIES}/<uuid:pk>/revisions/",
        revisions.EntryRevisionListView.as_view(),
        name="api-entry-revisions",
    ),
    path(f"{PROJECT}/memory/act/", moderation.EntryActionView.as_view(), name="api-act"),
    path(
        "messages/<uuid:pk>/sources/",
        revisions.ReplySourcesView.as_view(),
        name="api-reply-sources",
    ),
    # The URL before version 0.2.
    path(
        "messages/<uuid:pk>/told/",
        revisions.reply_sources_moved,
        name="old-api-reply-sources",
    ),
    path(
        f"{FACTS}/contradictions/", facts.ContradictionListView.as_view(), name="api-contradictions"
    ),
    path(f"{FACTS}/", facts.FactListView.as_view(), name="api-facts"),
    path(f"{FACTS}/<uuid:pk>/", facts.FactDetailView.as_view(), name="api-fact"),
    path(f"{ACTIVITY}/", activity.ActivityListView.as_view(), name="api-activity"),
    path(f"{ACTIVITY}/<uuid:pk>/", activity.ActivityDetailView.as_view(), name="api-activity-one"),
    path("usage/", costs.OwnUsageView.as_view(), name="api-own-usage"),
    path(f"{PROJECT}/limits/", costs.LimitView.as_view(), name="api-limits"),
    path(f"{PROJECT}/usage/", costs.UsageView.as_view(), name="api-usage"),
    path(f"{PROJECT}/forget/", forgetting.ForgetView.as_view(), name="api-forget"),
    path(f"{PROJECT}/recall/", recall.RecallView.as_view(), name="api-recall"),
    path(f"{PROJECT}/profile/", profile.ProfileView.as_view(), name="api-profile"),
    path(f"{PROJECT}/export/", profile.ProjectExportView.as_view(), name="api-export"),
    path(f"{FILES}/", files.FileListView.as_view(), name="api-files"),
    path(f"{FILES}/<uuid:pk>/", files.FileDetailView.as_view(), name="api-file"),
    path(f"{FILES}/<uuid:pk>/text/", files.FileTextView.as_view(), name="api-file-text"),
    path(
        f"{FILES}/<uuid:pk>/download/", files.FileDownloadView.as_view(), name="api-file-download"
    ),
    path(f"{FILES}/<uuid:pk>/retry/", files.FileRetryView.as_view(), name="api-file-retry"),
    path(f"{BLOCKS}/", blocks.BlockListView.as_view(), name="api-blocks"),
    path(f"{BLOCKS}/<str:name>/", blocks.BlockDetailView.as_view(), name="api-block"),
    path(f"{WEBHOOKS}/", webhooks.WebhookListView.as_view(), name="api-webhooks"),
    path(f"{WEBHOOK}/", webhooks.WebhookDetailView.as_view(), name="api-webhook"),
    path(f"{WEBHOOK}/secret/", webhooks.WebhookSecretView.as_view(), name="api-webhook-secret"),
    path(f"{WEBHOOK}/test/", webhooks.WebhookTestView.as_view(), name="api-webhook-test"),
    path(f"{WEBHOOK}/deliveries/", webhooks.DeliveryListView.as_view(), name="api-deliveries"),
    path(
        "sessions/<uuid:pk>/summarize/", summarizing.SummarizeView.as_view(), name="api-summarize"
    ),
]
