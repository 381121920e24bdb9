"""REST routes of projects, members, invitations and tokens."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from projects.api import invitations, members, projects, tokens


class UsernameConverter(StringConverter):
    """Matches the characters that Django permits in usernames."""

    regex = r"[\w.@+-]+"


register_converter(UsernameConverter, "username")

urlpatterns = [
    path("projects/", projects.ProjectListView.as_view(), name="api-projects"),
    path("projects/<slug:slug>/", projects.ProjectDetailView.as_view(), name="api-project"),
    path("projects/<slug:slug>/members/", members.MemberListView.as_view(), name="api-members"),
    path(
        "projects/<slug:slug>/members/<username:username>/",
        members.MemberDetailView.as_view(),
        name="api-member",
    ),
    path(
        "projects/<slug:slug>/invitations/",
        invitations.InvitationListView.as_view(),
        name="api-invitations",
    ),
    path(
        "projects/<slug:slug>/invitations/<uuid:id>/",
        invitations.InvitationDetailView.as_view(),
        name="api-invitation",
    ),
    path(
        "invitations/",
        invitations.ReceivedInvitationListView.as_view(),
        name="api-received-invitations",
    ),
    path(
        "invitations/<uuid:id>/",
        invitations.ReceivedInvitationDetailView.as_view(),
        name="api-received-invitation",
    ),
    path("tokens/", tokens.TokenListView.as_view(), name="api-tokens"),
    path("tokens/<uuid:id>/", tokens.TokenDetailView.as_view(), name="api-token"),
]
