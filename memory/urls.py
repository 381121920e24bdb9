"""The pages of a project's memory."""

from django.urls import path

from memory.views.bank import memory
from memory.views.entries import change, entry

urlpatterns = [
    path("projects/<slug:slug>/memory/", memory, name="memory"),
    path("projects/<slug:slug>/memory/<uuid:pk>/", entry, name="entry"),
    path("projects/<slug:slug>/memory/<uuid:pk>/change/", change, name="entry-change"),
]
