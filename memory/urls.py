"""URLs of the memory pages."""

from django.urls import include, path

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
from memory.views.knowledge import about_me, decide, export
from memory.views.project_list import project_list
from memory.views.remember import remember_now
from memory.views.reply_sources import change_source, reply_sources, reply_sources_moved
from memory.views.review import review
from memory.views.search import search
from memory.views.welcome import welcome

project = [
    path("chats/<uuid:pk>/remember/", remember_now, name="session-remember"),
    path("memory/", memory_bank, name="memory"),
    path("memory/review/", review, name="memory-review"),
    path("memory/act/", entry_action, name="memory-act"),
    path("memory/known/", decide, name="knowledge"),
    path("memory/activity/", activity, name="memory-activity"),
    path("costs/", project_costs, name="costs"),
    path("overview/", overview, name="overview"),
    path("jump/", command_palette, name="jump"),
    path("search/", search, name="memory-search"),
    path("memory/blocks/", block_list, name="memory-blocks"),
    path("me/", about_me, name="about-me"),
    path("export/", export, name="project-export"),
    path("memory/forget/", forget, name="memory-forget"),
    path("memory/receipts/<uuid:pk>/", forget_receipt, name="memory-receipt"),
    path("memory/facts/", facts.fact_list, name="facts"),
    path("memory/facts/add/", facts.fact_create, name="fact-add"),
    path("memory/facts/<uuid:pk>/", facts.fact_detail, name="fact"),
    path("memory/facts/<uuid:pk>/change/", facts.fact_action, name="fact-change"),
    path("files/", listing.file_list, name="files"),
    path("files/<uuid:pk>/", viewer.file_detail, name="file"),
    path("files/<uuid:pk>/download/", viewer.file_download, name="file-download"),
    path("files/<uuid:pk>/retry/", viewer.file_retry, name="file-retry"),
    path("files/<uuid:pk>/pages/<int:number>/", viewer.file_page_image, name="file-page-image"),
    path("memory/<uuid:pk>/", entry_detail, name="entry"),
    path("settings/webhooks/", webhooks.webhook_list, name="webhooks"),
    path("settings/webhooks/<uuid:pk>/", webhooks.webhook_detail, name="webhook"),
]
message = [
    path("sources/", reply_sources, name="reply-sources"),
    path("sources/change/", change_source, name="reply-source-change"),
    # The URL before version 0.2.
    path("told/", reply_sources_moved, name="old-reply-sources"),
    path("files/<int:number>/", viewer.reply_file, name="reply-file"),
]
urlpatterns = [
    path("", project_list, name="projects"),
    path("welcome/", welcome, name="welcome"),
    path("messages/<uuid:pk>/", include(message)),
    path("projects/<slug:slug>/", include(project)),
    path("costs/", own_costs, name="own-costs"),
    path("costs/server/", server_costs, name="server-costs"),
]
