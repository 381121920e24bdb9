"""The pages of invitations: owners create and revoke them, users accept them."""

from uuid import UUID

from allauth.decorators import rate_limit
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from projects import invitations
from projects.forms import InvitationForm
from projects.models import Invitation, MemberRole, Membership
from projects.permissions import ProjectArchivedError, membership, require_active
from projects.views.projects import settings_page


@never_cache
@require_http_methods(["GET", "POST"])
def project_invitations(request: HttpRequest, slug: str) -> HttpResponse:
    """Create or revoke an invitation, as `action` says. Only this response shows the new link."""
    if request.method != "POST":
        return redirect("project-settings", slug)
    member = membership(request.user, slug, (MemberRole.OWNER,))
    require_active(member.project)
    return ACTIONS.get(request.POST.get("action", ""), _create)(request, member)


def _create(request: HttpRequest, member: Membership) -> HttpResponse:
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return settings_page(request, member, 400, invitation_form=form)
    invitation, secret = invitations.invite(member.project, request.user, **form.invitation())
    link = invitations.link_to(request, invitation, secret)
    return settings_page(request, member, made=invitation, link=link)


def _revoke(request: HttpRequest, member: Membership) -> HttpResponse:
    pk = request.POST.get("id", "")
    try:
        invitation = get_object_or_404(member.project.invitations.unrevoked(), pk=pk)
    except ValidationError as error:
        raise Http404 from error
    invitations.revoke(invitation)
    messages.success(request, _("The invitation was revoked."))
    return redirect(reverse("project-settings", args=[member.project.slug]) + "#invitations")


ACTIONS = {"make": _create, "revoke": _revoke}


@never_cache
@login_not_required
@rate_limit(action="invitation", limit_get=True)
@require_safe
def open_invitation(request: HttpRequest, slug: str, secret: str) -> HttpResponse:
    """Store the link in the browser session, and redirect to a URL without the secret."""
    invitation = Invitation.objects.for_link(slug, secret).first()
    if invitation is None:
        raise Http404
    invitations.set_pending_invitation(request, invitation)
    return redirect("join")


@never_cache
@login_not_required
@rate_limit(action="invitation")
@require_http_methods(["GET", "POST"])
def join(request: HttpRequest) -> HttpResponse:
    """Show the project of the opened link, or why it is closed. A POST joins the project."""
    invitation = invitations.pending_invitation(request)
    if invitation is None:
        return render(request, "projects/join.html", status=404)
    reason = invitations.closed_reason(invitation)
    if request.user.is_authenticated:
        if request.method == "POST":
            try:
                invitations.admit(invitation, request.user)
            except (invitations.NotAdmittedError, ProjectArchivedError) as error:
                reason = str(error)
        if invitation.project.memberships.filter(user=request.user).exists():
            invitations.clear_pending_invitation(request)
            return redirect("project", invitation.project.slug)
    context = {"invitation": invitation, "why_not": reason, "role": invitation.role}
    return render(request, "projects/join.html", context, status=410 if reason else 200)


@require_POST
def answer_invitation(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Accept or decline an invitation by username, depending on the field `action`."""
    received = Invitation.objects.filter(user=request.user.pk).select_related("project")
    is_accepted = request.POST.get("action") == "accept"
    if is_accepted and (earlier := received.joined().filter(pk=pk).first()):
        # The user clicked twice, or joined by another invitation.
        return redirect("project", earlier.project.slug)
    invitation = get_object_or_404(Invitation.objects.for_user(request.user), pk=pk)
    if is_accepted:
        invitations.admit(invitation, request.user)
        return redirect("project", invitation.project.slug)
    invitations.revoke(invitation)
    messages.success(request, _("You declined the invitation."))
    return redirect("projects")
