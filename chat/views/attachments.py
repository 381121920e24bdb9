"""The images of a chat, for its pages."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from chat import access, attachments
from chat.models.sessions import SessionStatus
from chat.serving import image_response


@login_required
@require_POST
def upload(request: HttpRequest, slug: str, pk) -> JsonResponse:
    """Takes an image for a message to come; what is refused is told with its reason."""
    chat_session = access.session_for_writing(request.user, pk)
    if chat_session.project.slug != slug or chat_session.status == SessionStatus.CLOSED:
        raise Http404
    file = request.FILES.get("file")
    if file is None:
        return JsonResponse({"detail": _("There is no file.")}, status=400)
    try:
        kept = attachments.attach(chat_session, request.user, file.name or "", file)
    except attachments.Refused as refused:
        return JsonResponse({"detail": str(refused)}, status=400)
    shown = resolve_url("session-image", slug, chat_session.pk, kept.pk)
    told = {"id": kept.pk, "url": shown, "width": kept.width, "height": kept.height}
    return JsonResponse(told, status=201)


@login_required
@require_GET
def image(request: HttpRequest, slug: str, pk, image_pk) -> HttpResponseBase:
    """An image as the page shows it."""
    found = attachments.for_reading(request.user, image_pk)
    if found.session_id != pk or found.session.project.slug != slug:
        raise Http404
    return image_response(request, found)
