"""The pages of a project's settings and members."""

from copy import copy
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from projects.forms import SETTING_GROUPS, DeletionForm, InvitationForm, MemberForm, ProjectForm
from projects.invitations import AlreadyMemberError, invite_user
from projects.models import MemberRole, Membership, Project
from projects.permissions import (
    membership,
    project_for_managing,
    project_for_owning,
    project_for_removing,
)
from projects.services import (
    LastOwnerError,
    change_role,
    delete_project,
    remove_member,
    set_archived,
)


@require_http_methods(["GET", "POST"])
def project_settings(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the settings and members of a project to its members. Owners can change them."""
    if request.method != "POST":
        return settings_page(request, membership(request.user, slug))
    tab = request.POST.get("tab", "")
    form = ProjectForm(request.POST, instance=project_for_managing(request.user, slug), tab=tab)
    if not form.is_valid():
        return settings_page(request, membership(request.user, slug), 400, data=request.POST)
    form.instance.save(update_fields=form.changed_data)
    messages.success(request, _("Saved."))
    return _to_tab(slug, tab if form.fields else "")


def _to_tab(slug: str, tab: str) -> HttpResponse:
    fragment = f"#{tab}" if tab else ""
    return redirect(reverse("project-settings", args=[slug]) + fragment)


@require_http_methods(["GET", "POST"])
def project_archive(request: HttpRequest, slug: str) -> HttpResponse:
    """Archive a project or make it active again, by the field `action`. For owners only."""
    if request.method == "POST":
        archived = request.POST.get("action") != "unarchive"
        set_archived(project_for_owning(request.user, slug), archived, request.user)
        messages.success(request, _("Archived.") if archived else _("Unarchived."))
    return _to_tab(slug, "danger")


@require_http_methods(["GET", "POST"])
def project_delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Delete a project. For owners only, who must enter its slug to confirm."""
    if request.method != "POST":
        return redirect("project-settings", slug)
    project = project_for_owning(request.user, slug)
    form = DeletionForm(project, request.POST)
    if not form.is_valid():
        return settings_page(request, membership(request.user, slug), 400, deletion_form=form)
    delete_project(project)
    messages.success(request, _("%(name)s was deleted.") % {"name": project.name})
    return redirect("projects")


@require_http_methods(["GET", "POST"])
def project_members(request: HttpRequest, slug: str) -> HttpResponse:
    """Invite a user, remove a member or change a role, depending on the field `action`.

    For owners. Other members can only remove themselves.
    """
    if request.method != "POST":
        return redirect("project-settings", slug)
    action = ACTIONS.get(request.POST.get("action", ""), _add)
    if action is _remove:
        project = project_for_removing(request.user, slug, request.POST.get("username", ""))
    else:
        project = project_for_managing(request.user, slug)
    try:
        error = action(request, project)
    except LastOwnerError as last_owner_error:
        error = str(last_owner_error)
    if isinstance(error, MemberForm):
        return settings_page(request, membership(request.user, slug), 400, member_form=error)
    if error:
        messages.error(request, error)
    # Members who have just left the project cannot see its settings any more.
    still_member = Membership.objects.filter(user=request.user.pk, project=project).exists()
    return _to_tab(slug, "members") if still_member else redirect("projects")


def _add(request: HttpRequest, project: Project) -> MemberForm | None:
    form = MemberForm(request.POST)
    if not form.is_valid():
        return form
    username, role = form.cleaned_data["username"], form.cleaned_data["role"]
    try:
        invite_user(project, username, role, request.user)
    except AlreadyMemberError as error:
        form.add_error(error.field, str(error))
        return form
    messages.success(request, _("%(name)s was invited.") % {"name": username})
    return None


def _change_role(request: HttpRequest, project: Project) -> str | None:
    role = request.POST.get("role", "")
    if role not in MemberRole.values:
        return _("This role does not exist.")
    change_role(_member_in(request, project), role, request.user)
    return None


def _remove(request: HttpRequest, project: Project) -> None:
    member = _member_in(request, project)
    remove_member(member, request.user)
    if member.user_id == request.user.pk:
        messages.success(request, _("You left %(name)s.") % {"name": project.name})


ACTIONS = {"add": _add, "role": _change_role, "remove": _remove}


def _member_in(request: HttpRequest, project: Project) -> Membership:
    name = request.POST.get("username", "").replace("\0", "")
    return get_object_or_404(project.memberships, user__username=name)


def settings_page(
    request: HttpRequest,
    member: Membership,
    status: int = 200,
    data: QueryDict | None = None,
    **overrides: Any,
) -> HttpResponse:
    """Render the settings page with new forms. `overrides` replaces context variables by name.

    `data` is the POST data of one tab, or of all tabs if it contains no tab.
    """
    project = member.project
    posted = data.get("tab", "") if data else None
    context = {
        "project": project,
        "membership": member,
        "may_manage": member.role == MemberRole.OWNER and not project.is_archived,
        # Copies, so that the page does not show the name of an invalid form as the project's name.
        "setting_forms": {
            tab: ProjectForm(data if posted in ("", tab) else None, instance=copy(project), tab=tab)
            for tab in dict.fromkeys(group[0] for group in SETTING_GROUPS)
        },
        "member_form": MemberForm(),
        "deletion_form": DeletionForm(project),
        "invitation_form": InvitationForm(),
        "invitations": project.invitations.listed(),
        "members": project.memberships.select_related("user"),
        "roles": MemberRole.choices,
    }
    return render(request, "projects/settings.html", context | overrides, status=status)
