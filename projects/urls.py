"""The pages about projects; what happens inside one is in chat.urls and memory.urls."""

from django.urls import path

from projects import token_views, views

urlpatterns = [
    path("", views.projects, name="projects"),
    path("account/tokens/", token_views.tokens, name="tokens"),
    path("account/tokens/<uuid:pk>/revoke/", token_views.revoke, name="token-revoke"),
    path("projects/<slug:slug>/settings/", views.settings, name="project-settings"),
    path("projects/<slug:slug>/delete/", views.delete, name="project-delete"),
    path("projects/<slug:slug>/members/", views.members, name="project-members"),
]
