"""Actions on single sentences of a project's memory."""

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, resolve_url
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from memory import profile
from memory.moderation.sentence_changes import SentenceAction, SentenceChange, change_sentence
from memory.portability import ExportScope
from memory.portability.exporting import download
from memory.views import project_page, render_page
from projects.core.errors import DomainError
from projects.models import MemberRole, Membership, Project
from projects.permissions import WRITERS

# The pages that show sentences, to which the action returns.
PAGES = ("project", "overview", "about-me")


@project_page()
def about_me(request: HttpRequest, member: Membership) -> HttpResponse:
    context = {
        "profile": profile.profile(member, request.user),
        "sentences": profile.personal_knowledge(member),
    }
    return render_page(request, member, "profile.html", context)


@project_page()
def export(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Export the project for its owners, without others' private data; with `?mine`, own data."""
    mine = "mine" in request.GET
    if not mine and member.role != MemberRole.OWNER:
        raise Http404
    return download(ExportScope(member.project, request.user, only_own=mine))


@project_page(get=(), post=WRITERS)
def decide(request: HttpRequest, member: Membership) -> HttpResponse:
    """Confirm, remove or edit a sentence of a source, and return to the page `back`."""
    data = request.POST
    try:
        change = SentenceChange(
            key=data.get("source", ""),
            action=data.get("action", ""),
            version=_number(data.get("version", "")),
            place=_number(data.get("place", "0")),
            text=data.get("text", ""),
        )
        done = change_sentence(member, change)
        if change.action == SentenceAction.WRONG:
            done = _with_source(done, member.project, change.key)
        messages.success(request, done)
    except DomainError as error:
        messages.error(request, _refusal(error, data))
    except ValidationError:
        # The id is malformed.
        messages.error(request, _("This no longer exists."))
    back = data.get("back", "")
    page = back if back in PAGES else PAGES[0]
    return redirect(resolve_url(page, member.project.slug) + "#knows")


def _with_source(text: str, project: Project, key: str) -> str:
    """Return `text` with a link to the page of the source, where the removal can be undone."""
    kind, _colon, pk = key.partition(":")
    labels = {"fact": _("Open fact"), "entry": _("Open memory")}
    if kind not in labels:
        return text
    url = reverse(kind, args=[project.slug, pk])
    return format_html('{} <a href="{}">{}</a>', text, url, labels[kind])


def _refusal(error: DomainError, data: QueryDict) -> str:
    """Return the reason, with the correction that was not saved, so that it can be copied."""
    text = data.get("text", "").strip()
    if data.get("action") != SentenceAction.EDIT or not text:
        return str(error)
    return _("%(reason)s You wrote: “%(text)s”") % {"reason": error, "text": text}


def _number(text: str) -> int:
    """Return the number in `text`, otherwise 0, which no version has."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0
