"""One entry: its texts, what it was made of, what it lost, and what was done to it."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from chat.access import sessions_for
from chat.models import Message
from memory.access import entries_for, may_decide, may_forget
from memory.comparing import compared, texts_of
from memory.forms import EntryForm
from memory.layers import losses
from memory.layers.coverage import CONTRIBUTING
from memory.models import Activity, Entry, State
from memory.views import lineage
from memory.views.rows import rows
from projects.access import membership
from projects.models import Membership

SOURCES_SHOWN = 200
STATES_SHOWN = 50
ACTS_SHOWN = 50


@login_required
@require_GET
def entry(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """An entry with the digests it settled into, and with its children or its messages.

    `from` and `to` are the revisions to be compared, the last two if there are several; `part`
    gives the drawer beside the picture.
    """
    member = membership(request.user, slug)
    found = get_object_or_404(entries_for(member), pk=pk)
    readable = _may_read_messages(request.user, found)
    texts = texts_of(found) if readable or found.session_id is None else []
    context = {
        "project": member.project,
        "membership": member,
        "entry": found,
        "above": lineage.above(member, found),
        "sources": [] if found.session_id else lineage.sources(member, found),
        "readable": readable,
        "covered": _covered(found) if readable else [],
        "may_edit": _may_edit(member, found),
        "decides": may_decide(member, found),
        "may_forget": may_forget(member, found.session),
        "form": EntryForm(initial={"text": found.summary, "revision": found.revision}),
        "kept": found.particulars - losses.number(found.losses),
        "acts": rows(member, Activity.objects.filter(project=found.project_id, entry_id=found.pk))[
            :ACTS_SHOWN
        ],
        "stood": found.states.order_by("-since", "-id")[:STATES_SHOWN],
    }
    template = "memory/_entry.html" if "part" in request.GET else "memory/entry.html"
    return render(request, template, context | compared(texts, request.GET))


def _may_edit(member: Membership, found: Entry) -> bool:
    return member.may_write and found.state != State.HIDDEN and not found.withheld


def _may_read_messages(user, found: Entry) -> bool:
    return found.session_id is not None and sessions_for(user).filter(pk=found.session_id).exists()


def _covered(found: Entry) -> list[Message]:
    """The messages of the stretch that say something, in their order."""
    stretch = Message.objects.filter(
        CONTRIBUTING,
        session=found.session_id,
        seq__gte=found.first_seq,
        seq__lte=found.last_seq,
    )
    return list(stretch.select_related("author").order_by("seq")[:SOURCES_SHOWN])
