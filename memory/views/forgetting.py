"""Having something forgotten: what would go, the deed, and the receipt."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods

from chat import files
from chat.access import message_for_reading, session_for_reading, sessions_for
from chat.imports import reach_of
from chat.models import Import, Message, Session
from memory import forgetting
from memory.access import entries_for, may_forget
from memory.facts import facts_for
from memory.forgetting import Scope, rights
from memory.forgetting.origins import Origins, origins
from memory.forms import ForgetForm, ReasonForm
from memory.models import Activity, Entry, Fact, Verb
from memory.schedule import still_awaiting
from projects.access import WRITERS, membership
from projects.models import Membership


@dataclass(frozen=True)
class Meant:
    """What a wish names, as far as it is one thing. `session` is the chat it is of."""

    message: Message | None = None
    session: Session | None = None
    entry: Entry | None = None
    fact: Fact | None = None
    upload: Import | None = None


@login_required
@require_http_methods(["GET", "POST"])
def forget(request: HttpRequest, slug: str) -> HttpResponse:
    """Asks what is to be forgotten, says what would go, and then has it forgotten."""
    member = membership(request.user, slug, WRITERS)
    project = member.project
    with timezone.override(project.zone):
        given = request.POST if request.method == "POST" else request.GET
        form = ForgetForm(project, given or None)
        if not form.is_valid():
            return _question(request, member, form)
        meant = _meant(member, form.scope())
        reason = ReasonForm(request.POST or None)
        if request.method == "POST" and reason.is_valid():
            why = reason.cleaned_data["reason"]
            receipt = forgetting.forget(project, form.scope(), request.user, why)
            return redirect("memory-receipt", slug, receipt.id)
        context = {
            "project": project,
            "membership": member,
            "form": form,
            "meant": meant,
            "reason": reason,
            "total": forgetting.preview(project, form.scope(), request.user),
            "origins": _origins(member, form.scope()),
            "reach": reach_of(meant.upload) if meant.upload else None,
        }
        status = 400 if reason.errors else 200
        return render(request, "memory/forget.html", context, status=status)


def _question(request: HttpRequest, member: Membership, form: ForgetForm) -> HttpResponse:
    """For owners: whose words, or words of before when."""
    if not may_forget(member):
        raise Http404
    people = member.project.memberships.select_related("user").order_by("user__username")
    context = {
        "project": member.project,
        "membership": member,
        "form": form,
        "people": [one.user.get_username() for one in people],
    }
    status = 400 if form.errors else 200
    return render(request, "memory/forget_what.html", context, status=status)


def _meant(member: Membership, scope: Scope) -> Meant:
    """What `scope` names. Raises Http404 for what the member may not see or have forgotten."""
    message = message_for_reading(member.user, scope.message) if scope.message else None
    session = session_for_reading(member.user, scope.session) if scope.session else None
    entry = get_object_or_404(entries_for(member), pk=scope.entry) if scope.entry else None
    facts = facts_for(member).current()
    fact = get_object_or_404(facts, pk=scope.fact) if scope.fact else None
    uploads = member.project.imports.select_related("user")
    upload = get_object_or_404(uploads, pk=scope.upload) if scope.upload else None
    chats = [one.session for one in (message, entry) if one is not None]
    chats += [session] if session is not None else []
    if not rights.may_forget(member, scope):
        raise Http404
    if any(chat.project_id != member.project_id for chat in chats if chat is not None):
        raise Http404
    return Meant(message, session or (message.session if message else None), entry, fact, upload)


def _origins(member: Membership, scope: Scope) -> Origins:
    """What the thing that is named comes from, as far as the member may have all of it forgotten:
    what somebody poisoned is rid of everything that was made of it.
    """
    found = origins(member.project, scope)
    seen = set(sessions_for(member.user).filter(pk__in=[one.pk for one in found.sessions]))
    return Origins(
        [one for one in found.people if rights.may_forget(member, Scope(user=one.pk))],
        [
            one
            for one in found.sessions
            if one in seen and rights.may_forget(member, Scope(session=one.pk))
        ],
        [one for one in found.uploads if rights.may_forget(member, Scope(upload=one.pk))],
    )


@login_required
@require_GET
def receipt(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """What was removed from where, and what is left to be done; `?part` gives the latter alone."""
    member = membership(request.user, slug)
    acts = Activity.objects.filter(project=member.project, verb=Verb.FORGOTTEN)
    act = get_object_or_404(acts.select_related("by"), pk=pk)
    told = act.receipt
    context = {
        "project": member.project,
        "membership": member,
        "act": act,
        "waiting": still_awaiting(act),
        "files": files.left_by(act.project_id, act.pk),
    }
    if "part" in request.GET:
        return render(request, "memory/_awaiting.html", context)
    saw_it = [UUID(one) for one in told.get("saw_it", [])]
    search = told.get("search", {})
    found = [(one["where"], UUID(one["id"])) for one in search.get("found", [])]
    replies = _readable(member, saw_it)
    context |= {
        "phrases": search.get("phrases", 0),
        "replies": replies,
        "replies_elsewhere": len(saw_it) - len(replies),
    }
    return render(request, "memory/receipt.html", context | _places(member, found))


def _readable(member: Membership, ids: Sequence[UUID]) -> list[Message]:
    """Those of these messages that the member may read, oldest first."""
    sessions = sessions_for(member.user).filter(project=member.project)
    rows = Message.objects.filter(project=member.project, pk__in=ids, session__in=sessions)
    return list(rows.select_related("session").order_by("created_at", "pk"))


def _places(member: Membership, found: Sequence[tuple[str, UUID]]) -> dict[str, object]:
    """Where the search found the same words after all, as far as the member may look there."""
    messages = _readable(member, [pk for where, pk in found if where == "message"])
    named = [pk for where, pk in found if where == "entry"]
    entries = list(entries_for(member).filter(pk__in=named).newest_first())
    told = [pk for where, pk in found if where == "fact"]
    facts = list(facts_for(member).current().filter(pk__in=told).newest_first())
    return {
        "found": len(found),
        "found_messages": messages,
        "found_entries": entries,
        "found_facts": facts,
        "found_elsewhere": len(found) - len(messages) - len(entries) - len(facts),
    }
