"""The pages about projects: the list, the settings, the members."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from projects.access import membership, project_for_owning
from projects.creation import create_project
from projects.forms import MemberForm, NewProjectForm, ProjectForm
from projects.models import Membership, Project, Role


@login_required
def projects(request: HttpRequest) -> HttpResponse:
    """The projects of whoever asks, and a form for a new one."""
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
def settings(request: HttpRequest, slug: str) -> HttpResponse:
    """How a project answers and remembers, and who belongs to it. Owners change it."""
    if request.method != "POST":
        return _settings_page(request, membership(request.user, slug))
    form = ProjectForm(request.POST, instance=project_for_owning(request.user, slug))
    if not form.is_valid():
        # The page names the project as it is kept, not as the refused form would have it.
        return _settings_page(request, membership(request.user, slug), form=form)
    form.instance.save(update_fields=form.changed_data or None)
    messages.success(request, _("Saved."))
    return redirect("project-settings", slug)


@login_required
@require_POST
def members(request: HttpRequest, slug: str) -> HttpResponse:
    """Adds a member, gives one another role, or removes one: `action` says which."""
    project = project_for_owning(request.user, slug)
    action = ACTIONS.get(request.POST.get("action", ""), _add)
    refused = action(request, project)
    if isinstance(refused, MemberForm):
        return _settings_page(request, membership(request.user, slug), member_form=refused)
    if refused:
        messages.error(request, refused)
    # An owner who gave the project up has no page of it left to go back to.
    still_owner = _memberships_of(request.user).filter(project=project).exists()
    return redirect("project-settings", slug) if still_owner else redirect("projects")


def _add(request: HttpRequest, project: Project) -> MemberForm | None:
    form = MemberForm(request.POST)
    if not form.is_valid():
        return form
    _member, made = Membership.objects.get_or_create(
        project=project,
        user=form.cleaned_data["username"],
        defaults={"role": form.cleaned_data["role"]},
    )
    if not made:
        form.add_error("username", _("They are a member already."))
        return form
    return None


@transaction.atomic
def _change_role(request: HttpRequest, project: Project) -> str | None:
    member = _member(request, project)
    role = request.POST.get("role")
    if role not in Role.values:
        return _("There is no such role.")
    if role != Role.OWNER and _is_last_owner(member):
        return _("A project keeps at least one owner.")
    member.role = role
    member.save(update_fields=["role"])
    return None


@transaction.atomic
def _remove(request: HttpRequest, project: Project) -> str | None:
    member = _member(request, project)
    if _is_last_owner(member):
        return _("A project keeps at least one owner.")
    member.delete()
    return None


ACTIONS = {"add": _add, "role": _change_role, "remove": _remove}


def _member(request: HttpRequest, project: Project) -> Membership:
    name = request.POST.get("username", "")
    return get_object_or_404(project.memberships, user__username=name)


def _is_last_owner(member: Membership) -> bool:
    """Whether nobody else owns the project. The owners stay locked."""
    owners = Membership.objects.filter(project=member.project_id, role=Role.OWNER).order_by("pk")
    return [owner.pk for owner in owners.select_for_update()] == [member.pk]


def _settings_page(
    request: HttpRequest,
    member: Membership,
    form: ProjectForm | None = None,
    member_form: MemberForm | None = None,
) -> HttpResponse:
    context = {
        "project": member.project,
        "membership": member,
        "form": form or ProjectForm(instance=member.project),
        "member_form": member_form or MemberForm(),
        "members": member.project.memberships.select_related("user"),
        "roles": Role.choices,
    }
    refused = form is not None or member_form is not None
    return render(request, "projects/settings.html", context, status=400 if refused else 200)
