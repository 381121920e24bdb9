"""URLs of accounts and settings. The URLs of the list of projects and of the pages of a project are
in memory.urls and chat.urls.
"""

from django.urls import include, path

from projects.accounts.views import account
from projects.views import invitations, projects, tokens

project = [
    path("settings/", projects.project_settings, name="project-settings"),
    path("archive/", projects.project_archive, name="project-archive"),
    path("delete/", projects.project_delete, name="project-delete"),
    path("members/", projects.project_members, name="project-members"),
    path("invitations/", invitations.project_invitations, name="project-invitations"),
]
urlpatterns = [
    path("account/", account, name="account"),
    path("account/tokens/", tokens.token_list, name="tokens"),
    path("account/tokens/<uuid:pk>/revoke/", tokens.token_revoke, name="token-revoke"),
    path("projects/<slug:slug>/", include(project)),
    path("invitations/<uuid:pk>/", invitations.answer_invitation, name="invitation-answer"),
    path("join/", invitations.join, name="join"),
    path("join/<slug:slug>/<str:secret>/", invitations.open_invitation, name="invitation"),
]
