"""REST routes of projects, members, invitations and tokens."""

from django.urls import include, path, register_converter
from django.urls.converters import StringConverter

from projects.api import invitations, members, projects, tokens


class UsernameConverter(StringConverter):
    """Matches the characters that Django permits in usernames."""

    regex = r"[\w.@+-]+"


register_converter(UsernameConverter, "username")

project = [
    path("", projects.ProjectDetailView.as_view(), name="api-project"),
    path("members/", members.MemberListView.as_view(), name="api-members"),
    path("members/<username:username>/", members.MemberDetailView.as_view(), name="api-member"),
    path("invitations/", invitations.InvitationListView.as_view(), name="api-invitations"),
    path(
        "invitations/<uuid:id>/", invitations.InvitationDetailView.as_view(), name="api-invitation"
    ),
]
urlpatterns = [
    path("projects/", projects.ProjectListView.as_view(), name="api-projects"),
    path("projects/<slug:slug>/", include(project)),
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
