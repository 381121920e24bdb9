"""The page of one entry: its revisions, sources, losses and activity."""

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from chat.models import Message
from chat.permissions import sessions_for
from memory.layers import losses
from memory.layers.coverage import messages_of
from memory.layers.line_sources import linked_lines
from memory.models import Activity, EntryStatus
from memory.models.entries import CONVERSATION
from memory.moderation.revisions import comparison, entry_texts
from memory.permissions import entries_for, may_decide, may_forget
from memory.views import lineage, project_page, render_page
from memory.views.activity import activity_rows
from memory.views.forms.entries import EntryForm
from projects.models import Membership

MAX_SOURCES = 200
MAX_STATES = 50


@project_page()
def entry_detail(request: HttpRequest, member: Membership, pk) -> HttpResponse:
    """Show an entry with the digests above it, and its children or messages.

    Query parameters: `from` and `to` are the revisions to compare, by default the last two. `part`
    returns only the drawer that opens beside the list of layers.
    """
    entry = get_object_or_404(entries_for(member), pk=pk)
    is_digest, source = entry.granularity != CONVERSATION, lineage.EntrySource(entry)
    if is_digest:
        lineage.add_sources(member, [source])
    # Whether the member may open the chat or the file of the entry.
    readable = not is_digest and (
        entry.session_id is None or sessions_for(member.user).filter(pk=entry.session_id).exists()
    )
    covered: Iterable[Message] = ()
    if readable and not entry.file:
        covered = messages_of(entry).select_related("author")[:MAX_SOURCES]
    acts = Activity.objects.filter(project=entry.project_id, entry_id=entry.pk)
    # Without stored lines, the text is shown unchanged.
    stored = entry.read_lines() if entry.lines else []
    context = {
        "entry": entry,
        "above": lineage.ancestors(member, entry),
        "source": source,
        "readable": readable,
        "lines": [] if entry.withheld else linked_lines(request.user, member.project, stored),
        "file": entry.file.document if entry.file and readable else None,
        "covered": list(covered),
        "may_edit": member.may_write and entry.state != EntryStatus.HIDDEN and not entry.withheld,
        "decides": may_decide(member, entry),
        "may_forget": may_forget(member, entry.session),
        "form": EntryForm(initial={"text": entry.summary, "revision": entry.revision}),
        "kept": entry.particulars - losses.count_losses(entry.losses),
        "acts": activity_rows(member, acts),
        "states": entry.states.order_by("-since", "-id")[:MAX_STATES],
    }
    context |= comparison(entry_texts(entry) if readable or is_digest else [], request.GET)
    template = "_entry_drawer.html" if "part" in request.GET else "entry.html"
    return render_page(request, member, template, context)
