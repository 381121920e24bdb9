"""One entry: what it was made of, down to the message, and what people change about it."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.access import sessions_for
from chat.models import Message
from memory.access import entries_for, may_decide
from memory.forms import EntryForm
from memory.layers import review
from memory.layers.coverage import CONTRIBUTING
from memory.layers.review import Refused
from memory.models import Entry, EntryRevision, State
from projects.access import WRITERS, membership
from projects.models import Membership

SOURCES_SHOWN = 200
REVISIONS_SHOWN = 50

# Who decides, and what of: the state an entry is in, and whether it is then hidden.
DECISIONS = {
    "approve": (State.PROPOSED, False),
    "reject": (State.PROPOSED, True),
    "show": (State.HIDDEN, False),
}


@login_required
@require_GET
def entry(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """An entry with the digest it settled into, and with its children or its messages."""
    member = membership(request.user, slug)
    return _entry_page(request, member, get_object_or_404(entries_for(member), pk=pk))


@login_required
def change(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Edits an entry, pins it, hides it or decides on it: `action` says which."""
    if request.method != "POST":
        return redirect("entry", slug, pk)
    member = membership(request.user, slug, WRITERS)
    found = get_object_or_404(entries_for(member), pk=pk)
    action = request.POST.get("action", "")
    if action == "edit":
        return _edit(request, member, found)
    try:
        _change(member, found, action)
    except Refused as refused:
        messages.error(request, str(refused))
    if request.POST.get("back") == "memory":
        return redirect("memory", slug)
    return redirect("entry", slug, pk)


def _edit(request: HttpRequest, member: Membership, found: Entry) -> HttpResponse:
    form = EntryForm(request.POST)
    if form.is_valid():
        try:
            if not _may_edit(member, found):
                raise Refused(_("This text cannot be edited now."))
            review.edit(found, form.cleaned_data["summary"], request.user)
            return redirect("entry", member.project.slug, found.pk)
        except Refused as refused:
            form.add_error("summary", str(refused))
    return _entry_page(request, member, found, form)


def _change(member: Membership, found: Entry, action: str) -> None:
    """Raises Refused."""
    if action in DECISIONS:
        state, hidden = DECISIONS[action]
        if found.state != state:
            raise Refused(_("This was decided meanwhile."))
        if not may_decide(member, found):
            raise Refused(_("An owner decides on it."))
        review.set_hidden(found, hidden)
    elif action == "hide":
        if found.state in review.ASIDE:
            raise Refused(_("This is not among what is remembered."))
        review.set_hidden(found, True)
    elif action in ("pin", "unpin"):
        review.pin(found, action == "pin")
    else:
        raise Refused(_("There is no such action."))


def _entry_page(
    request: HttpRequest, member: Membership, found: Entry, form: EntryForm | None = None
) -> HttpResponse:
    readable = _may_read_messages(request.user, found)
    context = {
        "project": member.project,
        "membership": member,
        "entry": found,
        "parent": entries_for(member).filter(children=found.pk).first(),
        "children": _children(member, found),
        "readable": readable,
        "covered": _covered(found) if readable else [],
        "may_edit": _may_edit(member, found),
        "decides": may_decide(member, found),
        "form": form or EntryForm(initial={"summary": found.summary}),
        "revisions": _revisions(found, readable),
    }
    return render(request, "memory/entry.html", context, status=400 if form else 200)


def _may_edit(member: Membership, found: Entry) -> bool:
    return member.may_write and found.state != State.HIDDEN and not found.withheld


def _revisions(found: Entry, readable: bool) -> list[EntryRevision]:
    """The earlier texts, newest first.

    Those from a private session are for who began it: they may tell what was taken out before the
    entry was approved.
    """
    if found.withheld or (found.session_id is not None and not readable):
        return []
    return list(found.revisions.all()[:REVISIONS_SHOWN])


def _children(member: Membership, digest: Entry) -> list[Entry]:
    """What a digest was made of, newest first."""
    return list(entries_for(member).filter(parent=digest).newest_first()[:SOURCES_SHOWN])


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
