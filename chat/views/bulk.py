"""Actions on several chats of a project at once, and undoing them."""

import time
from contextlib import suppress

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from chat import permissions
from chat.conversations.sessions import UNDO_WINDOW, restore_session, update_session
from chat.forms import BulkAction, BulkForm
from projects.models import Membership, Project
from projects.permissions import WRITERS, membership, require_active

# The key of the last bulk action in the browser session.
LAST_ACTION = "just_changed"
UNDO = "undo"


@require_http_methods(["GET", "POST"])
def bulk(request: HttpRequest, slug: str) -> HttpResponse:
    """Archive, unarchive or delete the selected chats, or undo the last of these actions.

    Deletion must be confirmed on another page. If the user may not manage one of the chats, nothing
    is changed.
    """
    if request.method == "GET":
        return redirect("project", slug)
    member = membership(request.user, slug, WRITERS)
    require_active(member.project)
    if request.POST.get("action") == UNDO:
        return _undo_bulk(request, member)
    form = BulkForm(permissions.manageable_sessions(member), request.POST)
    if not form.is_valid():
        messages.error(request, _("Select the chats and an action."))
        return redirect("project", slug)
    if form.needs_confirmation:
        context = {"project": member.project, "membership": member, "form": form}
        return render(request, "chat/confirm_bulk.html", context)
    changed = [str(chat.pk) for chat in form.apply(request.user)]
    request.session[LAST_ACTION] = {
        "project": str(member.project.pk),
        "action": form.cleaned_data["action"],
        "chats": changed,
        "at": time.time(),
    }
    return redirect("project", slug)


def _undo_bulk(request: HttpRequest, member: Membership) -> HttpResponse:
    """Undo the last bulk action of this browser for the chats that can still be changed."""
    action, chats = _last_bulk(request, member.project)
    request.session.pop(LAST_ACTION, None)
    count = 0
    for pk in chats:
        with suppress(Http404):
            if action == BulkAction.DELETE:
                chat = permissions.deleted_session_for_managing(request.user, pk)
                count += restore_session(chat.pk) is not None
            else:
                chat = permissions.session_for_managing(request.user, pk)
                update_session(chat, by=request.user, archived=action == BulkAction.UNARCHIVE)
                count += 1
    if count:
        text = ngettext("Undone for 1 chat.", "Undone for %(count)s chats.", count)
        messages.success(request, text % {"count": count})
    else:
        messages.error(request, _("This can no longer be undone."))
    return redirect("project", member.project.slug)


def _last_bulk(request: HttpRequest, project: Project) -> tuple[str, list[str]]:
    """Return this browser's last bulk action in `project` and its chats, if it can be undone."""
    last = request.session.get(LAST_ACTION, {"project": "", "at": 0})
    is_recent = time.time() - last["at"] < UNDO_WINDOW.total_seconds()
    if last["project"] != str(project.pk) or not is_recent:
        return "", []
    return last["action"], last["chats"]


def _bulk_result(action: str, count: int) -> str:
    match action:
        case BulkAction.ARCHIVE:
            text = ngettext("1 chat was archived.", "%(count)s chats were archived.", count)
        case BulkAction.UNARCHIVE:
            text = ngettext("1 chat was unarchived.", "%(count)s chats were unarchived.", count)
        case _:
            text = ngettext("1 chat was deleted.", "%(count)s chats were deleted.", count)
    return text % {"count": count}


def last_result(request: HttpRequest, project: Project) -> str:
    """Return a description of the last bulk action of this browser; "" if it cannot be undone."""
    action, chats = _last_bulk(request, project)
    return _bulk_result(action, len(chats)) if chats else ""
