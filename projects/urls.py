"""The pages about projects; what happens inside one is in chat.urls and memory.urls."""

from django.urls import path

from projects import invitation_views, token_views, views
from projects.accounts.views import account

urlpatterns = [
    path("", views.projects, name="projects"),
    path("account/", account, name="account"),
    path("account/tokens/", token_views.tokens, name="tokens"),
    path("account/tokens/<uuid:pk>/revoke/", token_views.revoke, name="token-revoke"),
    path("projects/<slug:slug>/settings/", views.settings, name="project-settings"),
    path("projects/<slug:slug>/delete/", views.delete, name="project-delete"),
    path("projects/<slug:slug>/members/", views.members, name="project-members"),
    path("projects/<slug:slug>/invitations/", invitation_views.listed, name="project-invitations"),
    path("join/", invitation_views.join, name="join"),
    path("join/<slug:slug>/<str:secret>/", invitation_views.opened, name="invitation"),
]
