"""The page of saved prompts: to copy from, to write, to import and export."""

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from chat.conversations import saved_prompts
from chat.forms import SavedPromptForm
from chat.models import SavedPrompt
from projects.core.errors import DomainError
from projects.models import Membership
from projects.permissions import membership, project_for_writing

MAX_FILES = 50


@require_http_methods(["GET", "POST"])
def prompt_list(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the prompts. A POST writes, imports or deletes, as the field `action` selects.

    `?part=list` returns the prompts as JSON, for the composer.
    """
    if request.method == "POST":
        project_for_writing(request.user, slug)
    member = membership(request.user, slug)
    prompts = SavedPrompt.objects.visible_to(member)
    if request.GET.get("part") == "list":
        rows = prompts.values("name", "text")
        return JsonResponse({"prompts": list(rows)})
    if request.method != "POST":
        return _page(request, member, SavedPromptForm())
    action = request.POST.get("action", "")
    if action == "delete":
        try:
            prompt = get_object_or_404(prompts, pk=request.POST.get("id") or None)
        except ValidationError as error:
            raise Http404 from error
        prompt.delete()
        messages.success(request, _("%(name)s was deleted.") % {"name": prompt.name})
    elif action == "import":
        _import(request, member)
    else:
        form = SavedPromptForm(request.POST)
        if not (form.is_valid() and _write(request, member, form)):
            return _page(request, member, form, 400)
    return redirect("saved-prompts", slug)


def _write(request: HttpRequest, member: Membership, form: SavedPromptForm) -> bool:
    data = form.cleaned_data
    try:
        saved_prompts.put(member.project, _owner(request), data["name"], data["text"], request.user)
    except DomainError as error:
        form.add_error(error.field or None, str(error))
        return False
    return True


def _owner(request: HttpRequest):
    return None if request.POST.get("scope") == "project" else request.user


def _import(request: HttpRequest, member: Membership) -> None:
    """Import the posted Markdown files, and report each that is refused."""
    count = 0
    files = request.FILES.getlist("files")
    for file in files[:MAX_FILES]:
        content = file.read(100_000).decode("utf-8", errors="replace")
        name, text = saved_prompts.from_markdown(content, file.name or "")
        try:
            saved_prompts.put(member.project, _owner(request), name, text, request.user)
            count += 1
        except DomainError as error:
            messages.error(request, f"{file.name}: {error}")
    if len(files) > MAX_FILES:
        reason = _("At most %(most)s files can be imported at once. The others were left out.")
        messages.error(request, reason % {"most": MAX_FILES})
    messages.success(request, _("Imported prompts: %(count)s.") % {"count": count})


@require_GET
def prompt_file(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Download a prompt as a Markdown file."""
    prompts = SavedPrompt.objects.visible_to(membership(request.user, slug))
    prompt = get_object_or_404(prompts, pk=pk)
    return HttpResponse(
        saved_prompts.to_markdown(prompt),
        content_type="text/markdown; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{prompt.pk}.md"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def _page(
    request: HttpRequest, member: Membership, form: SavedPromptForm, status: int = 200
) -> HttpResponse:
    context = {
        "project": member.project,
        "membership": member,
        "prompts": SavedPrompt.objects.visible_to(member),
        "form": form,
    }
    return render(request, "chat/saved_prompts.html", context, status=status)
