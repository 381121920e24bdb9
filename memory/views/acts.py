"""What is done to entries from the pages: first what it would change, then the deed."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from memory.access import entries_for, is_private, objection_of
from memory.diffs import by_words
from memory.forms import ActForm
from memory.impact import preview
from memory.models import Entry, Verb
from memory.moderation import DONE, MOST_AT_ONCE, WORDED, Act, Outcome, carry_out
from memory.templatetags.layers import period
from projects.access import WRITERS, membership
from projects.models import Membership

REFUSALS_TOLD = 10


@login_required
@require_http_methods(["GET", "POST"])
def act(request: HttpRequest, slug: str) -> HttpResponse:
    """Does `action` to `entries`, or to the one that `one` names beside it.

    Without `confirmed` it is a page that says what that would change; `?part`, for the drawer,
    gives that alone, and once it is done nothing (204).
    """
    if request.method != "POST":
        return redirect("memory-review", slug)
    member = membership(request.user, slug, WRITERS)
    name, ids = _asked(request)
    entries = _selected(member, ids)
    if len(ids) == 1 and not entries:
        raise Http404
    wrong = _wrong(name, ids)
    if wrong:
        messages.error(request, wrong)
        return redirect(_back(request, member, entries))
    if len(entries) < len(ids):
        messages.warning(request, _("Some of them are no longer here."))
    action = Act(name)
    if "confirmed" in request.POST:
        return _do(request, member, action, entries)
    return _ask(request, member, action, entries)


def _asked(request: HttpRequest) -> tuple[str, list[str]]:
    """The act and the ids; what is no id is left out."""
    name, _, only = request.POST.get("one", "").partition(" ")
    ids = [only] if only else request.POST.getlist("entries")
    return name or request.POST.get("action", ""), [one for one in ids if _is_id(one)]


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _wrong(name: str, ids: list[str]) -> str:
    """Why nothing can be done with what was sent; empty when something can."""
    if name not in Act.values:
        return _("There is no such action.")
    if not ids:
        return _("Nothing was selected.")
    if len(ids) > MOST_AT_ONCE:
        return _("That is too much at once: at most %(most)s.") % {"most": MOST_AT_ONCE}
    if name in WORDED and len(ids) > 1:
        return _("This is done to one entry at a time.")
    return ""


def _ask(
    request: HttpRequest, member: Membership, action: Act, entries: list[Entry]
) -> HttpResponse:
    """What would come of it. A text that is still to be written is asked for first."""
    if action in WORDED and "text" not in request.POST:
        initial: dict[str, Any] = {"revision": entries[0].revision}
        if action == Act.EDIT:
            initial["text"] = entries[0].summary
        return _page(request, member, entries, ActForm(action, initial=initial))
    given = request.POST.copy()
    given.setdefault("reason", ActForm(action).initial["reason"])
    form = ActForm(action, given)
    return _page(request, member, entries, form, status=200 if form.is_valid() else 400)


def _do(
    request: HttpRequest, member: Membership, action: Act, entries: list[Entry]
) -> HttpResponse:
    form = ActForm(action, request.POST)
    if not form.is_valid():
        return _page(request, member, entries, form, status=400)
    outcome = carry_out(form.wish(request.user), entries, objection_of(member))
    if action in WORDED and outcome.refused:
        # What was written is not lost with the refusal.
        form.add_error("text", outcome.refused[0][1])
        return _page(request, member, entries, form, status=400)
    project = member.project
    if "part" in request.GET:
        if not outcome.refused:
            return HttpResponse(status=204)
        refused = [reason for _entry, reason in outcome.refused]
        return _page(request, member, entries, form, status=400, refused=refused)
    _tell(request, action, outcome)
    if len(outcome.receipts) == 1:
        return redirect("memory-receipt", project.slug, outcome.receipts[0].id)
    if outcome.receipts:
        return redirect(f"{resolve_url('memory-activity', project.slug)}?verb={Verb.FORGOTTEN}")
    return redirect(_back(request, member, entries))


def _tell(request: HttpRequest, action: Act, outcome: Outcome) -> None:
    """How many were done and which were refused, and why."""
    if outcome.done or len(outcome.refused) > 1:
        messages.success(request, f"{DONE[action]}: {len(outcome.done)}.")
    for entry, reason in outcome.refused[:REFUSALS_TOLD]:
        messages.error(request, f"{period(entry)}: {reason}")
    if more := len(outcome.refused[REFUSALS_TOLD:]):
        refused = ngettext("%(n)s more was refused.", "%(n)s more were refused.", more)
        messages.error(request, refused % {"n": more})


def _page(
    request: HttpRequest,
    member: Membership,
    entries: list[Entry],
    form: ActForm,
    status: int = 200,
    refused: Sequence[str] = (),
) -> HttpResponse:
    """What is to be confirmed. Of a form that is wrong, or not filled in yet, nothing is known."""
    project, action = member.project, form.act
    context = {
        "project": project,
        "membership": member,
        "act": action,
        "form": form,
        "entries": entries,
        "back": _back(request, member, entries),
        "refused": refused,
        "publishes": action == Act.APPROVE and any(map(is_private, entries)),
    }
    if action == Act.EDIT and form.is_bound:
        form.reads(entries[0].revision)
    if form.is_bound and form.is_valid():
        wish = form.wish(request.user)
        impact = preview(member.project, wish, entries, objection_of(member))
        if action in WORDED and impact.outcome.refused:
            form.add_error("text", impact.outcome.refused[0][1])
            status = 400
        else:
            context["impact"] = impact
        if action == Act.EDIT:
            context["texts"] = by_words(entries[0].summary, wish.text)
    template = "memory/_act_beside.html" if "part" in request.GET else "memory/act.html"
    return render(request, template, context, status=status)


def _selected(member: Membership, ids: list[str]) -> list[Entry]:
    """The entries that were named and are still to be seen, oldest first."""
    found = entries_for(member).select_related("session", "project").filter(pk__in=ids)
    return list(found.order_by("last_source_at", "pk"))


def _back(request: HttpRequest, member: Membership, entries: list[Entry]) -> str:
    """Where to go on: `back` if it is a page of ours, else the entry or the queue."""
    back = request.POST.get("back", "")
    if back.startswith("/") and url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        return back
    slug = member.project.slug
    if len(entries) == 1:
        return resolve_url("entry", slug, entries[0].pk)
    return resolve_url("memory-review", slug)
