"""Pages and actions for single messages."""

from asgiref.sync import async_to_sync
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat import permissions
from chat.conversations import edits
from chat.forms import EditForm
from chat.links import latest_url, message_url
from chat.model_forms import RegenerateForm
from chat.models import Message
from chat.providers import limits
from chat.providers.booking import Payer
from chat.streaming import live_replies, sse
from chat.streaming.poller import StreamGrant, require_free_stream
from chat.templatetags.markup import markdown
from chat.views import presenters
from projects.core.errors import ConflictError, InvalidInputError
from projects.permissions import membership

REVISIONS_PER_PAGE = 50


@require_GET
def stream(request: HttpRequest, pk) -> HttpResponseBase:
    """Stream an unfinished reply to a page that was opened after the reply began."""
    reply = permissions.message_for_reading(request.user, pk)
    render = presenters.turn_renderer(request, reply.session)
    grant = StreamGrant.for_request(request, reply.session)
    require_free_stream(grant)
    return sse.event_stream(
        reply, grant, render, render_markdown=markdown, render_lookups=presenters.lookup_renderer()
    )


@require_POST
def stop(request: HttpRequest, pk) -> HttpResponse:
    """Stop an unfinished reply. The text received so far is kept."""
    reply = permissions.message_for_writing(request.user, pk)
    if not reply.is_final:
        async_to_sync(live_replies.stop)(reply.pk)
    return redirect(latest_url(reply.session))


@require_http_methods(["GET", "POST"])
def regenerate(request: HttpRequest, pk) -> HttpResponseBase:
    """Begin another reply to the same message, by the chosen model. The new reply becomes active.
    A GET shows the choice of models.
    """
    reply = permissions.message_for_writing(request.user, pk)
    permissions.require_open(reply.session)
    form = RegenerateForm(reply.session, request.POST if request.method == "POST" else None)
    if request.method == "GET":
        form.add_choices()
        return _render_part(request, reply, "chat/_regenerate.html", form=form)
    limits.require_within_limits(reply.session.project, Payer.of(request))
    try:
        form.full_clean()
        _message, sibling = edits.regenerate(reply, form.cleaned_data.get("model", ""))
    except (ConflictError, InvalidInputError) as error:
        return presenters.conflict(request, reply.session, error)
    return presenters.answer(request, [sibling])


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, pk) -> HttpResponse:
    """Show the editor of a message, and save it.

    If another user has changed the message in the meantime, the editor shows both texts.
    """
    if request.method == "GET":
        message = permissions.message_for_writing(request.user, pk)
        if message.deleted_at is not None or not message.is_final:
            raise Http404
        initial = {"content": message.text, "version": message.version}
        return _render_editor(request, message, EditForm(message, initial=initial))
    message = permissions.message_for_changing(request.user, pk)
    form = EditForm(message, request.POST)
    if not form.is_valid():
        return _render_editor(request, message, form, status=400)
    content, version = form.cleaned_data["content"], form.cleaned_data["version"]
    try:
        edits.edit(message, content, request.user, version)
    except edits.StaleMessageError as error:
        current = error.current
        current.session = message.session
        retry = EditForm(current, {"content": content, "version": current.version})
        return _render_editor(request, current, retry, has_conflict=True, status=412)
    except ConflictError as error:
        form.add_error(None, str(error))
        return _render_editor(request, message, form, status=409)
    return redirect(message_url(message))


def _render_editor(
    request: HttpRequest,
    message: Message,
    form: EditForm,
    has_conflict: bool = False,
    status: int = 200,
) -> HttpResponse:
    context = {"form": form, "has_conflict": has_conflict}
    return _render_part(request, message, "chat/_edit.html", status, **context)


def _render_part(
    request: HttpRequest, message: Message, partial: str, status: int = 200, **context
) -> HttpResponse:
    """Render a template about a message: alone with `?part`, otherwise inside a page."""
    member = membership(request.user, message.session.project.slug)
    context |= presenters.session_context(message.session, member)
    context |= {"message": message, "may_change": permissions.may_change(member, message)}
    if "part" in request.GET:
        return render(request, partial, context, status=status)
    context |= {"partial": partial, "back": message_url(message)}
    return render(request, "chat/message.html", context, status=status)


@require_POST
def rerun(request: HttpRequest, pk) -> HttpResponseBase:
    """Post an alternative to a user's message, and begin the reply to it."""
    message = permissions.message_for_writing(request.user, pk)
    permissions.require_open(message.session)
    form = EditForm(message, request.POST)
    if not form.is_valid():
        if presenters.accepts_events(request):
            return JsonResponse({"detail": next(iter(form.errors.values()))[0]}, status=400)
        return _render_editor(request, message, form, status=400)
    limits.require_within_limits(message.session.project, Payer.of(request))
    try:
        messages = edits.rerun(message, form.cleaned_data["content"], request.user)
    except ConflictError as error:
        return presenters.conflict(request, message.session, error)
    return presenters.answer(request, [*messages])


@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, pk) -> HttpResponseBase:
    """Delete a message after a confirmation. An empty placeholder stays."""
    message = permissions.message_for_changing(request.user, pk)
    if request.method == "GET":
        return _render_part(request, message, "chat/_delete.html")
    try:
        edits.delete(message)
    except ConflictError as error:
        return presenters.conflict(request, message.session, error)
    return redirect(message_url(message))


@require_POST
def react(request: HttpRequest, pk) -> HttpResponseBase:
    """Add the emoji `give` to a message, or remove the emoji `take`."""
    message = permissions.message_for_writing(request.user, pk)
    emoji = request.POST.get("give") or request.POST.get("take", "")
    try:
        edits.react(message, request.user, emoji, "give" in request.POST)
    except InvalidInputError as error:
        return presenters.conflict(request, message.session, error)
    return redirect(message_url(message))


@require_POST
def choose(request: HttpRequest, pk) -> HttpResponseBase:
    """Make the branch with this message active."""
    message = permissions.message_for_writing(request.user, pk)
    try:
        edits.choose(message)
    except ConflictError as error:
        return presenters.conflict(request, message.session, error)
    return redirect(message_url(message))


@require_POST
def fork(request: HttpRequest, pk) -> HttpResponse:
    """Create a chat that begins with a copy of this chat, down to the message."""
    message = permissions.message_for_writing(request.user, pk)
    permissions.require_chat(message.session)
    return redirect(latest_url(edits.fork(message, request.user)))


@require_GET
def revisions(request: HttpRequest, pk) -> HttpResponse:
    """Show the earlier texts of a message."""
    message = permissions.message_for_reading(request.user, pk)
    if message.deleted_at is not None:
        raise Http404(_("This message was deleted."))
    earlier = message.revisions.select_related("edited_by")[:REVISIONS_PER_PAGE]
    return _render_part(request, message, "chat/_revisions.html", revisions=earlier)
