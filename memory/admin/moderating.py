"""Acts on entries from their list: first what they would change, then the deed."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from chat.veil import Veiled
from memory.access import is_private
from memory.admin.acting import in_english
from memory.diffs import by_words
from memory.forms import ActForm
from memory.impact import Impact, preview
from memory.models import Entry, Verb
from memory.moderation import DONE, MOST_AT_ONCE, WORDED, Act, Outcome, Wish, carry_out
from projects.models import Project


def _nothing_against(entry: Entry, act: Act) -> str:
    """Staff do what their permissions let them do, whoever's project it is."""
    return ""


class Moderating(Veiled):
    """Gives the admin of entries a page between the choice of an action and the deed."""

    def acts_for(self, request: HttpRequest) -> list[Act]:
        """What whoever asks may do."""
        names = self.get_actions(request)
        return [act for act in Act if act.value in names]

    def moderate(
        self, request: HttpRequest, queryset: QuerySet[Entry], act: Act
    ) -> HttpResponse | None:
        entries = list(queryset.select_related("session", "project")[: MOST_AT_ONCE + 1])
        if len(entries) > MOST_AT_ONCE:
            wrong = _("That is too much at once: at most %(most)s.") % {"most": MOST_AT_ONCE}
        elif act in WORDED and len(entries) > 1:
            wrong = _("This is done to one entry at a time.")
        else:
            # From the finest layer upward, in their order of time.
            entries.sort(key=lambda entry: (entry.last_source_at, entry.pk))
            return self._moderate(request, entries, act)
        self.message_user(request, wrong, messages.ERROR)
        return None

    def _moderate(
        self, request: HttpRequest, entries: list[Entry], act: Act
    ) -> HttpResponse | None:
        if act in WORDED and "text" not in request.POST:
            initial: dict[str, Any] = {"revision": entries[0].revision}
            if act == Act.EDIT:
                initial["text"] = entries[0].summary
            return self._ask(request, entries, ActForm(act, initial=initial))
        given = request.POST.copy()
        given.setdefault("reason", ActForm(act).initial["reason"])
        form = ActForm(act, given)
        if "confirmed" not in request.POST or not form.is_valid():
            return self._ask(request, entries, form)
        outcome = carry_out(form.wish(request.user), entries, _nothing_against)
        if act in WORDED and outcome.refused:
            form.add_error("text", outcome.refused[0][1])
            return self._ask(request, entries, form)
        return self._tell(request, act, outcome)

    def _ask(self, request: HttpRequest, entries: list[Entry], form: ActForm) -> HttpResponse:
        act = form.act
        context = self.admin_site.each_context(request) | {
            "title": str(act.label),
            "opts": self.opts,
            "media": self.media,
            "act": act,
            "form": form,
            "entries": entries,
            "picked": ACTION_CHECKBOX_NAME,
            "impacts": [],
        }
        if act in WORDED:
            self.leave_trace(request, entries[0])
        if act == Act.EDIT and form.is_bound:
            form.reads(entries[0].revision)
        if form.is_bound and form.is_valid():
            wish = form.wish(request.user)
            impacts = _impacts(wish, entries)
            refused = [one for _, impact in impacts for one in impact.outcome.refused]
            if act in WORDED and refused:
                form.add_error("text", refused[0][1])
            else:
                context["impacts"] = impacts
                context["any_done"] = any(impact.outcome.done for _, impact in impacts)
            if act == Act.EDIT:
                context["texts"] = by_words(entries[0].summary, wish.text)
        return TemplateResponse(request, "admin/memory/entry/act.html", context)

    def _tell(self, request: HttpRequest, act: Act, outcome: Outcome) -> HttpResponse | None:
        """How many were done and which were refused, and why; of one forgetting, the receipt."""
        for entry in outcome.done:
            self.log_change(request, entry, in_english(DONE[act]))
        for entry, reason in outcome.refused:
            self.message_user(request, f"{entry}: {reason}", messages.ERROR)
        self.message_user(request, f"{DONE[act]}: {len(outcome.done)}.")
        if not outcome.receipts or not request.user.has_perm("memory.view_activity"):
            return None
        if len(outcome.receipts) == 1:
            return redirect("admin:memory_activity_change", outcome.receipts[0].id)
        listed = reverse("admin:memory_activity_changelist")
        return redirect(f"{listed}?verb__exact={Verb.FORGOTTEN}")


def _impacts(wish: Wish, entries: Sequence[Entry]) -> list[tuple[Project, Impact]]:
    """What it would change, by project. Texts of private sessions do not show."""
    by_project: dict[Project, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_project[entry.project].append(entry)
    return [
        (project, preview(project, wish, theirs, _nothing_against, is_private))
        for project, theirs in by_project.items()
    ]
