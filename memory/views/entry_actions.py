"""Actions on entries from pages. Each shows a preview before it is applied."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memory.models import ActivityVerb, Entry
from memory.moderation.actions import (
    DONE_LABELS,
    TEXT_ACTIONS,
    ModerationAction,
    ModerationOutcome,
    apply_action,
    objection_of,
    selection_objection,
)
from memory.moderation.preview import preview
from memory.permissions import entries_for, is_private
from memory.templatetags.layers import period_label
from memory.views import project_page, render_page
from memory.views.forms.entries import EntryActionForm
from projects.core.text import parse_uuid
from projects.models import Membership
from projects.permissions import WRITERS

MAX_REFUSALS_SHOWN = 10


@project_page(post=WRITERS)
def entry_action(request: HttpRequest, member: Membership) -> HttpResponse:
    """Apply `action` to `entries`. `decision` may instead contain the action and one id.

    Without `confirmed`, render a preview. With `?part`, for the drawer, return only the preview, or
    204 once the action is applied.
    """
    if request.method != "POST":
        return redirect("memory-review", member.project.slug)
    name, ids = _parse_selection(request)
    rows = entries_for(member).select_related("session", "project").filter(pk__in=ids)
    entries = list(rows.order_by("last_source_at", "pk"))
    if error := _selection_error(name, ids):
        messages.error(request, error)
        return redirect(_back(request, member, entries))
    if not entries:
        raise Http404
    if len(entries) < len(set(ids)):
        messages.warning(request, _("Some of the memories no longer exist."))
    if "confirmed" in request.POST:
        return _apply(
            request, member, EntryActionForm(ModerationAction(name), request.POST), entries
        )
    form = EntryActionForm.for_preview(ModerationAction(name), request.POST, entries[0])
    return _confirmation_page(request, member, entries, form)


def _parse_selection(request: HttpRequest) -> tuple[str, list[UUID]]:
    """Return the action and the ids. Malformed ids are ignored."""
    name, _, only = request.POST.get("decision", "").partition(" ")
    texts = [only] if only else request.POST.getlist("entries")
    ids = [pk for text in texts if (pk := parse_uuid(text))]
    return name or request.POST.get("action", ""), ids


def _selection_error(name: str, ids: list[UUID]) -> str:
    if name not in ModerationAction.values:
        return _("This action does not exist.")
    if not ids:
        return _("Nothing is selected.")
    return selection_objection(ModerationAction(name), len(ids))


def _apply(
    request: HttpRequest, member: Membership, form: EntryActionForm, entries: list[Entry]
) -> HttpResponse:
    if not form.is_valid():
        return _confirmation_page(request, member, entries, form)
    outcome = apply_action(form.wish(request.user), entries, objection_of(member))
    if form.act in TEXT_ACTIONS and outcome.refused:
        # Show the form with the rejected text again.
        form.add_error("text", outcome.refused[0][1])
        return _confirmation_page(request, member, entries, form)
    slug = member.project.slug
    if "part" in request.GET:
        if not outcome.refused:
            return HttpResponse(status=204)
        refused = [reason for _entry, reason in outcome.refused]
        return _confirmation_page(request, member, entries, form, refused)
    _add_messages(request, form.act, outcome)
    if len(outcome.receipts) == 1:
        return redirect("memory-receipt", slug, outcome.receipts[0].id)
    if outcome.receipts:
        return redirect(f"{resolve_url('memory-activity', slug)}?verb={ActivityVerb.FORGOTTEN}")
    return redirect(_back(request, member, entries))


def _add_messages(
    request: HttpRequest, action: ModerationAction, outcome: ModerationOutcome
) -> None:
    """Report how many entries were changed, and why others were not."""
    if outcome.done or len(outcome.refused) > 1:
        messages.success(request, f"{DONE_LABELS[action]}: {len(outcome.done)}.")
    for entry, reason in outcome.refused[:MAX_REFUSALS_SHOWN]:
        messages.error(request, f"{period_label(entry)}: {reason}")
    if more := len(outcome.refused[MAX_REFUSALS_SHOWN:]):
        refused = ngettext("%(n)s more was not changed.", "%(n)s more were not changed.", more)
        messages.error(request, refused % {"n": more})


def _confirmation_page(
    request: HttpRequest,
    member: Membership,
    entries: list[Entry],
    form: EntryActionForm,
    refused: Sequence[str] = (),
) -> HttpResponse:
    """Render the preview. An invalid or incomplete form is shown without a preview."""
    context: dict[str, Any] = {
        "act": form.act,
        "form": form,
        "entries": entries,
        "back": _back(request, member, entries),
        "refused": refused,
        "publishes": form.act == ModerationAction.APPROVE and any(map(is_private, entries)),
    }
    objection = objection_of(member)
    context |= form.preview_context(
        request.user,
        entries,
        lambda wish: [(member.project, preview(member.project, wish, entries, objection))],
    )
    context["impact"] = context["impacts"][0][1] if context["impacts"] else None
    template = "_entry_action_drawer.html" if "part" in request.GET else "entry_action.html"
    status = 400 if form.errors or refused else 200
    return render_page(request, member, template, context, status)


def _back(request: HttpRequest, member: Membership, entries: list[Entry]) -> str:
    """Return `back` if it is a path of this site, else the entry's page or the review queue."""
    back = request.POST.get("back", "")
    if back.startswith("/") and url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        return back
    slug = member.project.slug
    if len(entries) == 1:
        return resolve_url("entry", slug, entries[0].pk)
    return resolve_url("memory-review", slug)
