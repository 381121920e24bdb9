"""URLs of the memory pages."""

from django.urls import path

from memory.views import facts, webhooks
from memory.views.activity import activity, overview
from memory.views.bank import memory_bank
from memory.views.blocks import block_list
from memory.views.charts.costs import own_costs, project_costs, server_costs
from memory.views.command_palette import command_palette
from memory.views.entries import entry_detail
from memory.views.entry_actions import entry_action
from memory.views.files import listing, viewer
from memory.views.forgetting import forget, forget_receipt
from memory.views.knowledge import decide
from memory.views.profile import about_me, export
from memory.views.project_list import project_list
from memory.views.remember import remember_now
from memory.views.reply_sources import change_source, reply_sources, reply_sources_moved
from memory.views.review import review
from memory.views.search import search
from memory.views.welcome import welcome

urlpatterns = [
    path("", project_list, name="projects"),
    path("welcome/", welcome, name="welcome"),
    path("messages/<uuid:pk>/sources/", reply_sources, name="reply-sources"),
    path("messages/<uuid:pk>/sources/change/", change_source, name="reply-source-change"),
    # The URL before version 0.2.
    path("messages/<uuid:pk>/told/", reply_sources_moved, name="old-reply-sources"),
    path("projects/<slug:slug>/chats/<uuid:pk>/remember/", remember_now, name="session-remember"),
    path("projects/<slug:slug>/memory/", memory_bank, name="memory"),
    path("projects/<slug:slug>/memory/review/", review, name="memory-review"),
    path("projects/<slug:slug>/memory/act/", entry_action, name="memory-act"),
    path("projects/<slug:slug>/memory/known/", decide, name="knowledge"),
    path("projects/<slug:slug>/memory/activity/", activity, name="memory-activity"),
    path("costs/", own_costs, name="own-costs"),
    path("costs/server/", server_costs, name="server-costs"),
    path("projects/<slug:slug>/costs/", project_costs, name="costs"),
    path("projects/<slug:slug>/overview/", overview, name="overview"),
    path("projects/<slug:slug>/jump/", command_palette, name="jump"),
    path("projects/<slug:slug>/search/", search, name="memory-search"),
    path("projects/<slug:slug>/memory/blocks/", block_list, name="memory-blocks"),
    path("projects/<slug:slug>/me/", about_me, name="about-me"),
    path("projects/<slug:slug>/export/", export, name="project-export"),
    path("projects/<slug:slug>/memory/forget/", forget, name="memory-forget"),
    path("projects/<slug:slug>/memory/receipts/<uuid:pk>/", forget_receipt, name="memory-receipt"),
    path("projects/<slug:slug>/memory/facts/", facts.fact_list, name="facts"),
    path("projects/<slug:slug>/memory/facts/add/", facts.fact_create, name="fact-add"),
    path("projects/<slug:slug>/memory/facts/<uuid:pk>/", facts.fact_detail, name="fact"),
    path(
        "projects/<slug:slug>/memory/facts/<uuid:pk>/change/", facts.fact_action, name="fact-change"
    ),
    path("messages/<uuid:pk>/files/<int:number>/", viewer.reply_file, name="reply-file"),
    path("projects/<slug:slug>/files/", listing.file_list, name="files"),
    path("projects/<slug:slug>/files/<uuid:pk>/", viewer.file_detail, name="file"),
    path(
        "projects/<slug:slug>/files/<uuid:pk>/download/", viewer.file_download, name="file-download"
    ),
    path("projects/<slug:slug>/files/<uuid:pk>/retry/", viewer.file_retry, name="file-retry"),
    path(
        "projects/<slug:slug>/files/<uuid:pk>/pages/<int:number>/",
        viewer.file_page_image,
        name="file-page-image",
    ),
    path("projects/<slug:slug>/memory/<uuid:pk>/", entry_detail, name="entry"),
    path("projects/<slug:slug>/settings/webhooks/", webhooks.webhook_list, name="webhooks"),
    path(
        "projects/<slug:slug>/settings/webhooks/<uuid:pk>/", webhooks.webhook_detail, name="webhook"
    ),
]
