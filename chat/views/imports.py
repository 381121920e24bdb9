"""The page of a project's imports, and a chat as a file."""

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from chat import access
from chat import imports as uploads
from chat.downloads import download
from chat.importers import Refused
from chat.imports import UNFINISHED
from chat.models import Import
from projects.access import WRITERS, membership
from projects.models import Membership, Role

IMPORTS_ON_THE_PAGE = 20
NAMES = {
    "auto": _("Recognise it"),
    "jsonl": _("Strata: one message a line (JSON Lines)"),
    "strata": _("Strata: an exported chat (JSON)"),
    "chatgpt": _("ChatGPT"),
    "claude": _("Claude"),
    "openwebui": _("Open WebUI"),
    "locomo": _("LoCoMo"),
}


def _formats() -> list[tuple[str, object]]:
    return [(name, NAMES.get(name, name)) for name in ("auto", *settings.CHAT_IMPORTERS)]


class ImportForm(forms.Form):
    """A file of conversations."""

    file = forms.FileField(
        label=_("File"), help_text=_("An export, or the zip file that it came in.")
    )
    format = forms.ChoiceField(label=_("Format"), choices=_formats, initial="auto")


@login_required
@require_http_methods(["GET", "POST"])
def imports(request: HttpRequest, slug: str) -> HttpResponse:
    """Takes a file to import, and shows how far one's imports are; `?part` gives these alone."""
    member = membership(request.user, slug, WRITERS)
    if request.method != "POST":
        template = "chat/_imports.html" if "part" in request.GET else "chat/imports.html"
        return _page(request, member, ImportForm(), template)
    form = ImportForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            uploads.receive(member.project, request.user, **form.cleaned_data)
        except Refused as reason:
            form.add_error("file", str(reason))
        else:
            return redirect("imports", slug)
    return _page(request, member, form, status=400)


@login_required
@require_GET
def export(request: HttpRequest, slug: str, pk) -> HttpResponseBase:
    """A chat as a file, in the `?format` asked for."""
    chat_session = access.session_for_reading(request.user, pk)
    format = request.GET.get("format", "markdown")
    if chat_session.project.slug != slug or format not in settings.CHAT_EXPORTERS:
        raise Http404
    return download(chat_session, format)


def _page(
    request: HttpRequest,
    member: Membership,
    form: ImportForm,
    template: str = "chat/imports.html",
    status: int = 200,
) -> HttpResponse:
    rows = Import.objects.filter(project=member.project, user=member.user_id)
    kept = rows.kept() if member.role == Role.OWNER else rows.kept().alone_of(member.user_id)
    may_forget = Exists(kept.filter(pk=OuterRef("pk")))
    mine = list(rows.annotate(may_forget=may_forget)[:IMPORTS_ON_THE_PAGE])
    context = {
        "project": member.project,
        "membership": member,
        "form": form,
        "imports": mine,
        "under_way": any(one.state in UNFINISHED for one in mine),
        "most": settings.MAX_UPLOAD_MB,
    }
    return render(request, template, context, status=status)
