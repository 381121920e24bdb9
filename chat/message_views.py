"""What people do with what was said: the pages and forms of single messages."""

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat import access, changes, pages, streams
from chat.admission import Grant
from chat.api import streaming
from chat.forms import EditForm
from chat.models import Message
from chat.templatetags.markup import markdown
from projects.access import membership

REVISIONS_A_PAGE = 50


@login_required
@require_GET
def stream(request: HttpRequest, pk) -> HttpResponseBase:
    """Follows a reply that is being said, for whoever opens the page meanwhile."""
    reply = access.message_for_reading(request.user, pk)
    render = pages.renderer(request, reply.session)
    grant = Grant.of(request, reply.session)
    return streaming.event_stream(reply, grant, render=render, typeset=markdown)


@login_required
@require_POST
def stop(request: HttpRequest, pk) -> HttpResponse:
    """Ends a reply that is being said; what was said so far stays."""
    reply = access.message_for_writing(request.user, pk)
    if not reply.is_final:
        async_to_sync(streams.stop)(reply.pk)
    return redirect(pages.latest(reply.session))


@login_required
@require_POST
def regenerate(request: HttpRequest, pk) -> HttpResponseBase:
    """Answers a message once more; the new reply counts from then on."""
    spoken = access.message_for_writing(request.user, pk)
    pages.unless_closed(spoken.session)
    try:
        _, reply = changes.regenerate(spoken)
    except changes.Refused as refused:
        return pages.refuse(request, spoken.session, str(refused))
    return pages.answer(request, [reply])


@login_required
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, pk) -> HttpResponse:
    """A message in a box, to be changed in place or said anew.

    Who was overtaken by somebody else's change gets both texts, and nothing is lost.
    """
    if request.method == "GET":
        message = _to_edit(access.message_for_writing(request.user, pk))
        read = {"content": message.text, "version": message.version}
        return _editor(request, message, EditForm(message, initial=read))
    message = access.message_for_changing(request.user, pk)
    form = EditForm(message, request.POST)
    if not form.is_valid():
        return _editor(request, message, form, status=400)
    said = form.cleaned_data
    try:
        changes.edit(message, said["content"], request.user, said["version"])
    except changes.Stale as stale:
        stale.message.session = message.session
        now = {"content": said["content"], "version": stale.message.version}
        again = EditForm(message, now)
        return _editor(request, stale.message, again, overtaken=True, status=412)
    except changes.Refused as refused:
        form.add_error(None, str(refused))
        return _editor(request, message, form, status=409)
    return redirect(pages.at(message))


def _to_edit(message: Message) -> Message:
    if message.deleted_at is not None or not message.is_final:
        raise Http404
    return message


def _editor(
    request: HttpRequest,
    message: Message,
    form: EditForm,
    overtaken: bool = False,
    status: int = 200,
) -> HttpResponse:
    return _about(request, message, "chat/_edit.html", status, form=form, overtaken=overtaken)


def _about(
    request: HttpRequest, message: Message, partial: str, status: int = 200, **context
) -> HttpResponse:
    """What is to be shown about a message: alone for `?part`, else as a page of its own."""
    member = membership(request.user, message.session.project.slug)
    context |= pages.turn_context(message.session, member)
    context |= {"message": message, "may_change": access.may_change(member, message)}
    if "part" in request.GET:
        return render(request, partial, context, status=status)
    beside = pages.sidebar(request, message.session.project)
    whole = context | beside | {"partial": partial, "back": pages.at(message)}
    return render(request, "chat/message.html", whole, status=status)


@login_required
@require_POST
def rerun(request: HttpRequest, pk) -> HttpResponseBase:
    """Says another text in place of a person's, and has it answered."""
    message = access.message_for_writing(request.user, pk)
    pages.unless_closed(message.session)
    form = EditForm(message, request.POST)
    if not form.is_valid():
        if pages.wants_events(request):
            return JsonResponse({"detail": next(iter(form.errors.values()))[0]}, status=400)
        return _editor(request, message, form, status=400)
    try:
        said = changes.rerun(message, form.cleaned_data["content"], request.user)
    except changes.Refused as refused:
        return pages.refuse(request, message.session, str(refused))
    return pages.answer(request, [*said])


@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, pk) -> HttpResponseBase:
    """Asks, and then deletes a message; a tombstone stays in its place."""
    message = access.message_for_changing(request.user, pk)
    if request.method == "GET":
        return _about(request, message, "chat/_delete.html")
    try:
        changes.delete(message)
    except changes.Refused as refused:
        return pages.refuse(request, message.session, str(refused))
    return redirect(pages.at(message))


@login_required
@require_POST
def react(request: HttpRequest, pk) -> HttpResponseBase:
    """Gives the emoji `give` to a message, or takes back `take`."""
    message = access.message_for_writing(request.user, pk)
    emoji = request.POST.get("give") or request.POST.get("take", "")
    try:
        changes.react(message, request.user, emoji, "give" in request.POST)
    except changes.Refused as refused:
        return pages.refuse(request, message.session, str(refused))
    return redirect(pages.at(message))


@login_required
@require_POST
def choose(request: HttpRequest, pk) -> HttpResponse:
    """Makes the path that counts go through this one of several siblings."""
    message = access.message_for_writing(request.user, pk)
    changes.choose(message)
    return redirect(pages.at(message))


@login_required
@require_POST
def fork(request: HttpRequest, pk) -> HttpResponse:
    """A new chat that begins with this one, down to the message."""
    message = access.message_for_writing(request.user, pk)
    pages.unless_notes(message.session)
    return redirect(pages.latest(changes.fork(message, request.user)))


@login_required
@require_GET
def revisions(request: HttpRequest, pk) -> HttpResponse:
    """The earlier texts of a message."""
    message = access.message_for_reading(request.user, pk)
    if message.deleted_at is not None:
        raise Http404(_("This message was deleted."))
    earlier = message.revisions.select_related("edited_by")[:REVISIONS_A_PAGE]
    return _about(request, message, "chat/_revisions.html", revisions=earlier)
