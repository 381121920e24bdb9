"""One entry and what it was made of, down to the message."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from chat.access import sessions_for
from chat.models import Message
from memory.models import Entry, State
from memory.receivers import CONTRIBUTING
from projects.access import membership
from projects.models import Membership, Role

SOURCES_SHOWN = 200


@login_required
@require_GET
def entry(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """An entry with the digest it settled into, and with its children or its messages."""
    member = membership(request.user, slug)
    found = get_object_or_404(_entries_for(member).select_related("session"), pk=pk)
    readable = _may_read_messages(request.user, found)
    context = {
        "project": member.project,
        "membership": member,
        "entry": found,
        "parent": _entries_for(member).filter(pk=found.parent_id).first(),
        "children": _children(member, found),
        "readable": readable,
        "covered": _covered(found) if readable else [],
    }
    return render(request, "memory/entry.html", context)


def _entries_for(member: Membership):
    """The project's entries; those that a moderator hid only for its owners."""
    entries = Entry.objects.filter(project=member.project)
    return entries if member.role == Role.OWNER else entries.exclude(state=State.HIDDEN)


def _children(member: Membership, digest: Entry) -> list[Entry]:
    """What a digest was made of, newest first."""
    return list(_entries_for(member).filter(parent=digest).newest_first()[:SOURCES_SHOWN])


def _may_read_messages(user, found: Entry) -> bool:
    return found.session_id is not None and sessions_for(user).filter(pk=found.session_id).exists()


def _covered(found: Entry) -> list[Message]:
    """The messages of the stretch that say something, in their order."""
    stretch = Message.objects.filter(
        session=found.session_id,
        seq__gte=found.first_seq,
        seq__lte=found.last_seq,
        status__in=CONTRIBUTING,
    )
    spoken = stretch.exclude(text="").select_related("author").order_by("seq")
    return list(spoken[:SOURCES_SHOWN])
