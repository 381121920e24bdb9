"""Upload and display of a chat's images."""

from django.http import Http404, HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from chat import attachments, permissions
from chat.attachments.responses import image_response
from chat.models.sessions import SessionStatus


@require_POST
def upload(request: HttpRequest, slug: str, pk) -> JsonResponse:
    """Store an image for the next message, or respond with the reason if the image is invalid."""
    chat_session = permissions.session_for_writing(request.user, pk, slug=slug)
    if chat_session.status == SessionStatus.CLOSED:
        raise Http404
    file = request.FILES.get("file")
    if file is None:
        return JsonResponse({"detail": _("No file was uploaded.")}, status=400)
    try:
        attachment = attachments.upload_image(chat_session, request.user, file.name or "", file)
    except attachments.ImageRejectedError as error:
        return JsonResponse({"detail": str(error)}, status=400)
    return JsonResponse(
        {
            "id": attachment.pk,
            "url": resolve_url("session-image", slug, chat_session.pk, attachment.pk),
            "width": attachment.width,
            "height": attachment.height,
        },
        status=201,
    )


@require_GET
def image(request: HttpRequest, slug: str, pk, image_pk) -> HttpResponseBase:
    """Return the file of an image."""
    attachment = attachments.attachment_for_reading(request.user, image_pk)
    if attachment.session_id != pk or attachment.session.project.slug != slug:
        raise Http404
    return image_response(request, attachment)
