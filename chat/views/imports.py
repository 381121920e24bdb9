"""The page of a project's imports, and the export of a chat."""

from django import forms
from django.conf import settings
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from chat import permissions
from chat.exporters import export_response
from chat.importers import ImportRejectedError, UnknownFormatError, jobs
from chat.importers.jobs import UNFINISHED
from chat.models import Import
from projects.core.text import translate_reason
from projects.models import MemberRole, Membership
from projects.permissions import WRITERS, membership, require_active

IMPORTS_PER_PAGE = 20
FORMAT_LABELS = {
    "auto": _("Detect automatically"),
    "jsonl": _("Strata: one message per line (JSON Lines)"),
    "strata": _("Strata: an exported chat (JSON)"),
    "chatgpt": _("ChatGPT"),
    "claude": _("Claude"),
    "openwebui": _("Open WebUI"),
    "locomo": _("LoCoMo"),
}

NO_EXPORT = _(
    "This file is no export of ChatGPT, Claude, Open WebUI or Strata, or it is incomplete."
)


def import_formats() -> list[tuple[str, object]]:
    return [(name, FORMAT_LABELS.get(name, name)) for name in ("auto", *settings.CHAT_IMPORTERS)]


class ImportForm(forms.Form):
    """A file with conversations."""

    file = forms.FileField(
        label=_("File"), help_text=_("An export file, or a zip that contains it.")
    )
    format = forms.ChoiceField(label=_("Format"), choices=import_formats, initial="auto")


@require_http_methods(["GET", "POST"])
def imports_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the user's imports. A POST request creates one. `?part` returns only the list."""
    member = membership(request.user, slug, WRITERS)
    if request.method != "POST":
        template = "chat/_imports.html" if "part" in request.GET else "chat/imports.html"
        return _render_imports(request, member, ImportForm(), template)
    require_active(member.project)
    form = ImportForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            jobs.create_import(member.project, request.user, **form.cleaned_data)
        except UnknownFormatError:
            form.add_error("file", NO_EXPORT)
        except (ImportRejectedError, jobs.TooManyImportsError) as error:
            form.add_error("file", translate_reason(str(error)))
        else:
            return redirect("imports", slug)
    return _render_imports(request, member, form, status=400)


@require_GET
def export(request: HttpRequest, slug: str, pk) -> HttpResponseBase:
    """Download a chat in the format `?format`."""
    chat_session = permissions.session_for_reading(request.user, pk, slug=slug)
    format = request.GET.get("format", "markdown")
    if format not in settings.CHAT_EXPORTERS:
        raise Http404
    return export_response(chat_session, format)


def _render_imports(
    request: HttpRequest,
    member: Membership,
    form: ImportForm,
    template: str = "chat/imports.html",
    status: int = 200,
) -> HttpResponse:
    rows = Import.objects.filter(project=member.project, user=member.user_id)
    forgettable = rows.with_messages()
    if member.role != MemberRole.OWNER:
        forgettable = forgettable.only_by(member.user_id)
    may_forget = Exists(forgettable.filter(pk=OuterRef("pk")))
    imports = list(rows.annotate(may_forget=may_forget)[:IMPORTS_PER_PAGE])
    context = {
        "project": member.project,
        "membership": member,
        "form": form,
        "imports": imports,
        "is_running": any(upload.state in UNFINISHED for upload in imports),
        "most": settings.MAX_UPLOAD_MB,
    }
    return render(request, template, context, status=status)
