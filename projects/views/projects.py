"""The pages about projects: the list, the settings, the members."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from projects.access import membership, project_for_owning
from projects.creation import create_project
from projects.deletion import delete_project
from projects.forms import DeletionForm, InvitationForm, MemberForm, NewProjectForm, ProjectForm
from projects.members import LastOwner, add, change_role, remove
from projects.models import Membership, Project, Role


@login_required
@require_http_methods(["GET", "POST"])
def projects(request: HttpRequest) -> HttpResponse:
    """The projects of whoever asks, and a form for a new one.

    An administrator who has none yet is welcomed, unless `all` are asked for.
    """
    begins = request.user.is_superuser and not _memberships_of(request.user).exists()
    if begins and request.method == "GET" and "all" not in request.GET:
        return redirect("welcome")
    form = NewProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = create_project(request.user, **form.cleaned_data)
        return redirect("project", made.slug)
    memberships = _memberships_of(request.user).annotate(people=Count("project__memberships"))
    context = {"memberships": memberships.order_by("project__name", "project__id"), "form": form}
    status = 400 if form.is_bound else 200
    return render(request, "projects/list.html", context, status=status)


def _memberships_of(user) -> QuerySet[Membership]:
    return Membership.objects.filter(user=user).select_related("project")


@login_required
@require_http_methods(["GET", "POST"])
def settings(request: HttpRequest, slug: str) -> HttpResponse:
    """How a project answers and remembers, and who belongs to it. Owners change it."""
    if request.method != "POST":
        return settings_page(request, membership(request.user, slug))
    form = ProjectForm(request.POST, instance=project_for_owning(request.user, slug))
    if not form.is_valid():
        # The page names the project as it is kept, not as the refused form would have it.
        return settings_page(request, membership(request.user, slug), 400, form=form)
    form.instance.save(update_fields=form.changed_data)
    messages.success(request, _("Saved."))
    return redirect("project-settings", slug)


@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Deletes a project for its owner, who types its slug to say that it is meant."""
    if request.method != "POST":
        return redirect("project-settings", slug)
    project = project_for_owning(request.user, slug)
    form = DeletionForm(project, request.POST)
    if not form.is_valid():
        return settings_page(request, membership(request.user, slug), 400, deletion_form=form)
    delete_project(project)
    messages.success(request, _("%(name)s is deleted.") % {"name": project.name})
    return redirect("projects")


@login_required
@require_http_methods(["GET", "POST"])
def members(request: HttpRequest, slug: str) -> HttpResponse:
    """Adds a member, gives one another role, or removes one: `action` says which."""
    if request.method != "POST":
        return redirect("project-settings", slug)
    project = project_for_owning(request.user, slug)
    action = ACTIONS.get(request.POST.get("action", ""), _add)
    try:
        refused = action(request, project)
    except LastOwner:
        refused = _("A project keeps at least one owner.")
    if isinstance(refused, MemberForm):
        return settings_page(request, membership(request.user, slug), 400, member_form=refused)
    if refused:
        messages.error(request, refused)
    # An owner who gave the project up has no page of it left to go back to.
    still_owner = _memberships_of(request.user).filter(project=project).exists()
    return redirect("project-settings", slug) if still_owner else redirect("projects")


def _add(request: HttpRequest, project: Project) -> MemberForm | None:
    form = MemberForm(request.POST)
    if not form.is_valid():
        return form
    told = form.cleaned_data
    _member, made = add(project, told["username"], told["role"], request.user)
    if not made:
        form.add_error("username", _("They are a member already."))
        return form
    return None


def _change_role(request: HttpRequest, project: Project) -> str | None:
    role = request.POST.get("role", "")
    if role not in Role.values:
        return _("There is no such role.")
    change_role(_member(request, project), role, request.user)
    return None


def _remove(request: HttpRequest, project: Project) -> None:
    remove(_member(request, project), request.user)


ACTIONS = {"add": _add, "role": _change_role, "remove": _remove}


def _member(request: HttpRequest, project: Project) -> Membership:
    name = request.POST.get("username", "")
    return get_object_or_404(project.memberships, user__username=name)


def settings_page(
    request: HttpRequest, member: Membership, status: int = 200, **given: Any
) -> HttpResponse:
    """The settings with fresh forms, but for what is `given`, by its name in the page."""
    project = member.project
    context = {
        "project": project,
        "membership": member,
        "form": ProjectForm(instance=project),
        "member_form": MemberForm(),
        "deletion_form": DeletionForm(project),
        "invitation_form": InvitationForm(),
        "invitations": project.invitations.standing().select_related("created_by"),
        "members": project.memberships.select_related("user"),
        "roles": Role.choices,
    }
    return render(request, "projects/settings.html", context | given, status=status)
