"""The pages of a project's memory."""

from django.urls import path

from memory.views import facts, webhooks
from memory.views.activity import activity
from memory.views.acts import act
from memory.views.bank import memory
from memory.views.blocks import shelves
from memory.views.entries import entry
from memory.views.forgetting import forget, receipt
from memory.views.jump import jump
from memory.views.overview import overview
from memory.views.portability import export
from memory.views.profile import about_me
from memory.views.review import review
from memory.views.search import search
from memory.views.told import message_told
from memory.views.welcome import welcome

urlpatterns = [
    path("welcome/", welcome, name="welcome"),
    path("messages/<uuid:pk>/told/", message_told, name="message-told"),
    path("projects/<slug:slug>/memory/", memory, name="memory"),
    path("projects/<slug:slug>/memory/review/", review, name="memory-review"),
    path("projects/<slug:slug>/memory/act/", act, name="memory-act"),
    path("projects/<slug:slug>/memory/activity/", activity, name="memory-activity"),
    path("projects/<slug:slug>/overview/", overview, name="overview"),
    path("projects/<slug:slug>/jump/", jump, name="jump"),
    path("projects/<slug:slug>/search/", search, name="memory-search"),
    path("projects/<slug:slug>/memory/blocks/", shelves, name="memory-blocks"),
    path("projects/<slug:slug>/me/", about_me, name="about-me"),
    path("projects/<slug:slug>/export/", export, name="project-export"),
    path("projects/<slug:slug>/memory/forget/", forget, name="memory-forget"),
    path("projects/<slug:slug>/memory/receipts/<uuid:pk>/", receipt, name="memory-receipt"),
    path("projects/<slug:slug>/memory/facts/", facts.listed, name="facts"),
    path("projects/<slug:slug>/memory/facts/add/", facts.add, name="fact-add"),
    path("projects/<slug:slug>/memory/facts/<uuid:pk>/", facts.one, name="fact"),
    path("projects/<slug:slug>/memory/facts/<uuid:pk>/change/", facts.change, name="fact-change"),
    path("projects/<slug:slug>/memory/<uuid:pk>/", entry, name="entry"),
    path("projects/<slug:slug>/settings/webhooks/", webhooks.listed, name="webhooks"),
    path("projects/<slug:slug>/settings/webhooks/<uuid:pk>/", webhooks.one, name="webhook"),
]
