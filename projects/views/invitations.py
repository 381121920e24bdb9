"""Links into a project: made and taken back by its owners, opened by who is invited."""

from allauth.decorators import rate_limit
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from projects import invitations
from projects.access import membership
from projects.forms import InvitationForm
from projects.invitations import NotAdmitted
from projects.models import Invitation, Membership, Role
from projects.views import settings_page


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def listed(request: HttpRequest, slug: str) -> HttpResponse:
    """Makes a link, which the answer alone shows, or takes one back: `action` says which."""
    if request.method != "POST":
        return redirect("project-settings", slug)
    member = membership(request.user, slug, (Role.OWNER,))
    return ACTIONS.get(request.POST.get("action", ""), _make)(request, member)


def _make(request: HttpRequest, member: Membership) -> HttpResponse:
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return settings_page(request, member, 400, invitation_form=form)
    made, secret = invitations.invite(member.project, request.user, **form.invitation())
    link = link_of(request, made, secret)
    return settings_page(request, member, made=made, link=link)


def _revoke(request: HttpRequest, member: Membership) -> HttpResponse:
    pk = request.POST.get("id", "")
    try:
        found = get_object_or_404(member.project.invitations.standing(), pk=pk)
    except ValidationError as error:
        raise Http404 from error
    invitations.revoke(found)
    messages.success(request, _("The link lets nobody in any more."))
    return redirect(reverse("project-settings", args=[member.project.slug]) + "#invitations")


ACTIONS = {"make": _make, "revoke": _revoke}


def link_of(request: HttpRequest, invitation: Invitation, secret: str) -> str:
    """The address to be handed on."""
    path = reverse("invitation", args=[invitation.project.slug, secret])
    return request.build_absolute_uri(path)


@never_cache
@rate_limit(action="invitation", limit_get=True)
@require_safe
def opened(request: HttpRequest, slug: str, secret: str) -> HttpResponse:
    """Takes the link in hand, and shows the page that names it no more."""
    found = Invitation.objects.of(slug, secret).first()
    if found is None:
        raise Http404
    invitations.take_in_hand(request, found)
    return redirect("join")


@never_cache
@rate_limit(action="invitation")
@require_http_methods(["GET", "POST"])
def join(request: HttpRequest) -> HttpResponse:
    """What the link in hand leads to, and why not if it does not. A POST joins."""
    invitation = invitations.in_hand(request)
    if invitation is None:
        return render(request, "projects/join.html", status=404)
    why_not = invitations.WHY_NOT.get(invitation.state, "")
    if request.user.is_authenticated:
        if request.method == "POST":
            try:
                invitations.admit(invitation, request.user)
            except NotAdmitted as late:
                why_not = str(late)
        if invitation.project.memberships.filter(user=request.user).exists():
            invitations.let_go(request)
            return redirect("project", invitation.project.slug)
    context = {"invitation": invitation, "why_not": why_not, "role": invitation.role}
    return render(request, "projects/join.html", context, status=410 if why_not else 200)
