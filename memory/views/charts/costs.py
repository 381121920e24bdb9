"""The pages of costs of a project, of a user and of the server. Each is also available as CSV."""

import csv
from collections.abc import Sequence
from io import TextIOWrapper
from tempfile import TemporaryFile
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from chat.models import Call, CallKind
from chat.providers import limits
from chat.providers.booking import Payer
from chat.providers.sums import FIGURES, csv_text, plain_rows, summed
from memory.views import project_page, render_page
from memory.views.charts.usage import latest, usage_charts
from projects.core.http.file_responses import stream_file
from projects.models import MemberRole, Membership, SpendingLimit
from projects.models.limits import AMOUNTS

SPANS = (7, 30, 90, 365)
DEFAULT_DAYS = 30
MAX_TABLE_ROWS = 50
CSV_BATCH_SIZE = 2_000
TITLES = {
    "model": gettext_lazy("By model"),
    "user": gettext_lazy("By user"),
    "project": gettext_lazy("By project"),
    "kind": gettext_lazy("By kind"),
    "day": gettext_lazy("By day"),
}


class LimitForm(forms.ModelForm):
    class Meta:
        model = SpendingLimit
        fields = AMOUNTS


@project_page(post=(MemberRole.OWNER,))
def project_costs(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the costs of a project, to owners also by user. A POST request sets its limit."""
    project, is_owner = member.project, member.role == MemberRole.OWNER
    limit = SpendingLimit.objects.filter(project=project).first()
    form = LimitForm(request.POST or None, instance=limit or SpendingLimit(project=project))
    if request.method == "POST" and form.is_valid():
        # Not `form.save`: two requests could both create the limit.
        SpendingLimit.objects.update_or_create(form.cleaned_data, project=project)
        messages.success(request, _("Saved."))
        return redirect("costs", project.slug)
    calls = latest(Call.objects.filter(project=project), _days(request))
    keys = ("model", "user", "kind") if is_owner else ("model", "kind")
    if request.GET.get("format") == "csv":
        return _csv(calls, ("day", *keys), project.slug)
    context = _sums(request, calls, keys) | {
        "form": form if is_owner else None,
        "budgets": list(limits.all_budgets(project.pk, Payer.of(request))),
    }
    return render_page(request, member, "costs.html", context, 400 if form.is_bound else 200)


@require_GET
def own_costs(request: HttpRequest) -> HttpResponseBase:
    """Show the costs of the user's own requests in all projects."""
    calls = Call.objects.filter(user=request.user.pk)
    budgets = limits.all_budgets(None, Payer.of(request))
    return _account_page(request, calls, ("model", "project", "kind"), list(budgets))


@require_GET
def server_costs(request: HttpRequest) -> HttpResponseBase:
    """Show the costs of the server to its administrators."""
    if not request.user.is_superuser:
        raise Http404
    return _account_page(request, Call.objects.all(), ("model", "user", "project", "kind"), [])


def _account_page(
    request: HttpRequest,
    calls: QuerySet[Call],
    keys: Sequence[str],
    budgets: Sequence[limits.Budget],
) -> HttpResponseBase:
    calls = latest(calls, _days(request))
    if request.GET.get("format") == "csv":
        return _csv(calls, ("day", *keys), "strata")
    is_server = "user" in keys
    context = _sums(request, calls, keys) | {"budgets": budgets, "is_server": is_server}
    return render(request, "memory/account_costs.html", context)


def _days(request: HttpRequest) -> int:
    text = request.GET.get("days", "")
    return int(text) if text in map(str, SPANS) else DEFAULT_DAYS


def _sums(request: HttpRequest, calls: QuerySet[Call], keys: Sequence[str]) -> dict[str, Any]:
    """Return the charts, the tables and the totals. Each takes one query."""
    days = _days(request)
    rows = plain_rows(summed(calls, ("day", "model")))
    total = {name: sum(row[name] or 0 for row in rows) for name in FIGURES}
    return {
        "charts": usage_charts(rows, days),
        "tables": grouped(calls, keys),
        "total": total,
        "cached_percent": round(100 * total["cached_tokens"] / (total["input_tokens"] or 1)),
        "days": days,
        "spans": SPANS,
        "max_rows": MAX_TABLE_ROWS,
    }


def grouped(calls: QuerySet[Call], keys: Sequence[str]) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Return a title and the rows of a table for each key. Each table takes one query."""
    return [(TITLES[key], _table(calls, key)) for key in keys]


def _table(calls: QuerySet[Call], key: str) -> list[dict[str, Any]]:
    """Return the groups with the most tokens, or the latest days, each with a `name`."""
    order = ["-by_day"] if key == "day" else ["-sum_input_tokens", f"by_{key}"]
    rows = plain_rows(summed(calls, (key,)).order_by(*order)[:MAX_TABLE_ROWS])
    labels: dict[str, Any] = dict(CallKind.choices) if key == "kind" else {}
    nobody = _("Strata (automatic)")
    return [{**row, "name": labels.get(row[key], row[key]) or nobody} for row in rows]


def _csv(calls: QuerySet[Call], keys: Sequence[str], name: str) -> StreamingHttpResponse:
    """Return all groups of `calls` as a file, which is written to the disk first."""
    file = TemporaryFile()  # noqa: SIM115  (the response closes it)
    text = TextIOWrapper(file, "utf-8", newline="")
    writer = csv.writer(text)
    columns = (*keys, *FIGURES)
    writer.writerow(columns)
    rows = summed(calls, keys).order_by(*(f"by_{key}" for key in keys))
    for row in rows.iterator(CSV_BATCH_SIZE):
        [plain] = plain_rows([row])
        writer.writerow([csv_text(plain[column]) for column in columns])
    text.detach()
    file.seek(0)
    return stream_file(file, f"{name}-costs.csv", "text/csv; charset=utf-8")
