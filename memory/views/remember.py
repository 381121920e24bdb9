"""Remember now: summarise a chat on request and show its summary."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from chat import permissions
from chat.models import Session
from chat.views import presenters
from memory.layers.line_sources import linked_lines
from memory.models import Entry
from memory.summary_requests import (
    SummaryProgress,
    SummaryRequest,
    request_summary,
    summary_progress,
    wait_for_entry,
)


@require_http_methods(["GET", "POST"])
def remember_now(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Summarise the new messages of a chat, and show the summary or its progress.

    `after` is the seq of the message before the summarised ones. Without it, the last summary is
    shown. `?part` returns only the summary, for the page of the chat.
    """
    chat_session = permissions.session_for_writing(request.user, pk, slug=slug)
    permissions.require_chat(chat_session)
    if request.method == "POST":
        summary = request_summary(chat_session)
        if not summary.reason:
            wait_for_entry(chat_session, summary.after)
        # After a redirect, the page could not show that nothing was started.
        if "part" in request.GET or summary.is_broker_down:
            return _render(request, chat_session, summary)
        after = "" if summary.reason else f"?after={summary.after}"
        return redirect(resolve_url("session-remember", slug, pk) + after)
    after = request.GET.get("after", "")
    if after.isdecimal() and len(after) < 10:
        return _render(request, chat_session, SummaryRequest(int(after)))
    return _render(request, chat_session, None)


def _render(
    request: HttpRequest, chat_session: Session, summary: SummaryRequest | None
) -> HttpResponse:
    if summary is None or summary.reason:
        entries = Entry.objects.filter(project=chat_session.project_id, session=chat_session)
        last = entries.filter(file=None)
        progress = SummaryProgress(list(last.order_by("-first_seq")[:1]))
    else:
        progress = summary_progress(chat_session, summary.after)
    stored = [
        line
        for entry in progress.entries
        if entry.lines and not entry.withheld
        for line in entry.read_lines()
    ]
    context = presenters.page_context(request, chat_session) | {
        "summary": summary,
        "progress": progress,
        "lines": linked_lines(request.user, chat_session.project, stored),
    }
    template = "memory/_remembered.html" if "part" in request.GET else "memory/remembered.html"
    with timezone.override(chat_session.project.zone):
        return render(request, template, context)
