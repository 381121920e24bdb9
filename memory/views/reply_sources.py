"""What a reply was told: as a page, and as the drawer beside its chat."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat import pages
from chat.access import message_for_reading
from memory import told
from projects.access import membership


@login_required
@require_GET
def message_told(request: HttpRequest, pk) -> HttpResponse:
    """The things that stood in a reply's prompt; `?part` gives the drawer alone."""
    message = message_for_reading(request.user, pk)
    if not message.receipt:
        raise Http404(_("It was told nothing: it is no reply, or has not begun."))
    chat_session = message.session
    member = membership(request.user, chat_session.project.slug)
    context = pages.chat_context(request, chat_session) | {
        "message": message,
        "receipt": message.receipt,
        "parts": told.parts(message.receipt, member),
    }
    template = "memory/_told.html" if "part" in request.GET else "memory/told.html"
    return render(request, template, context)
