"""The sources of a reply: the memories in its prompt, as a page and as a drawer beside the chat."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.permissions import message_for_reading
from chat.views import presenters
from memory.prompt.receipt_sources import readable_sections
from projects.permissions import membership


@login_required
@require_GET
def reply_sources(request: HttpRequest, pk) -> HttpResponse:
    """Show the sources of a reply; `?part` returns the drawer alone."""
    message = message_for_reading(request.user, pk)
    if not message.receipt:
        raise Http404(_("This message has no context yet: only finished replies have one."))
    chat_session = message.session
    member = membership(request.user, chat_session.project.slug)
    context = presenters.page_context(request, chat_session) | {
        "message": message,
        "receipt": message.receipt,
        "sections": readable_sections(message.receipt, member),
    }
    part = "part" in request.GET
    template = "memory/_reply_sources.html" if part else "memory/reply_sources.html"
    return render(request, template, context)
