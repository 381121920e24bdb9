"""The sources of a reply: the memories in its prompt, as a page and as a drawer beside the chat."""

from collections.abc import Sequence

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from chat.models import Message
from chat.permissions import message_for_reading, message_for_writing
from chat.prompt.types import SOURCE_GROUPS
from chat.views import presenters
from memory.layers.lines import Line
from memory.moderation.receipt_changes import ReceiptChange, apply_change
from memory.prompt.likely_sources import likely_sources
from memory.prompt.receipt_sources import ReceiptSection, ReceiptSource, readable_sections
from memory.recall import embedders
from projects.core.errors import DomainError, InvalidInputError
from projects.models import Membership
from projects.permissions import membership


@require_GET
def reply_sources(request: HttpRequest, pk) -> HttpResponse:
    """Show the sources of a reply, or only those of one `kind`. `?part` returns only the drawer."""
    message = message_for_reading(request.user, pk)
    return _render(request, message, membership(request.user, message.session.project.slug))


@login_not_required
@require_GET
def reply_sources_moved(request: HttpRequest, pk) -> HttpResponse:
    """Redirect from the former URL of `reply_sources`."""
    return redirect("reply-sources", pk, permanent=True)


@require_POST
def change_source(request: HttpRequest, pk) -> HttpResponse:
    """Correct a source of a reply, replace it because it is outdated, or hide it.

    `source` is the key of the source, `line` the index of its line in the receipt, and `text` the
    correct version. Responds with the sources; with `?part`, only with the drawer.
    """
    message = message_for_writing(request.user, pk)
    member = membership(request.user, message.session.project.slug)
    sources = [source for section in _sections(message, member) for source in section.sources]
    key = request.POST.get("source", "")
    source = next((source for source in sources if source.key and source.key == key), None)
    try:
        if source is None:
            raise InvalidInputError(_("This memory has changed, or is not in this reply."))
        change = ReceiptChange(
            action=request.POST.get("act", ""),
            text=request.POST.get("text", ""),
            line=_line(source, request.POST.get("line", "0")),
        )
        notice, status = apply_change(member, key, change), 200
    except DomainError as error:
        notice, status = str(error), 400
    if "part" in request.GET:
        return _render(request, message, member, notice, status)
    (messages.success if status == 200 else messages.error)(request, notice)
    kind = request.GET.get("kind", "")
    suffix = f"?kind={kind}" if kind in SOURCE_GROUPS else ""
    return redirect(resolve_url("reply-sources", pk) + suffix)


def _line(source: ReceiptSource, position: str) -> Line | None:
    """Return the line at this index of the receipt; None for a source without lines."""
    if not source.lines:
        return None
    if not position.isdecimal() or len(position) > 3 or int(position) >= len(source.lines):
        raise InvalidInputError(_("This memory has changed, or is not in this reply."))
    return source.lines[int(position)].line


def _sections(message: Message, member: Membership) -> list[ReceiptSection]:
    if not message.receipt:
        raise Http404(_("This message has no context yet: only finished replies have one."))
    return readable_sections(message.receipt, member)


def _render(
    request: HttpRequest, message: Message, member: Membership, notice: str = "", status: int = 200
) -> HttpResponse:
    sections = _sections(message, member)
    likely = _likely(message, sections)
    kind = request.GET.get("kind", "")
    context = presenters.page_context(request, message.session) | {
        "message": message,
        "receipt": message.receipt,
        "sections": sections,
        "likely": likely,
        "kind": kind if kind in SOURCE_GROUPS else "",
        # The sources of this kind, the most likely first.
        "of_kind": sorted(
            (it for section in sections for it in section.sources if it.group == kind),
            key=lambda source: likely.index(source) if source in likely else len(likely),
        ),
        "changes": True,
        "notice": notice,
        "refused": request.POST if status != 200 else {},
    }
    part = "part" in request.GET
    template = "memory/_reply_sources.html" if part else "memory/reply_sources.html"
    return render(request, template, context, status=status)


def _likely(message: Message, sections: Sequence[ReceiptSection]) -> list[ReceiptSource]:
    """Return the sources that the reply probably used, the most likely first."""
    sources = [source for section in sections for source in section.sources]
    if message.deleted_at is not None:
        return []
    parents = Message.objects.filter(children=message.pk, deleted_at=None)
    question = parents.values_list("text", flat=True).first() or ""
    texts = [source.texts for source in sources]
    # Always the built-in embedder, because it is fast and a receipt may have a hundred lines.
    embedder = embedders.create("static", 0)
    return [sources[index] for index in likely_sources(question, message.text, texts, embedder)]
