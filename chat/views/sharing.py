"""Share links: every member of the project can read the chat with its link, even a private chat."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from chat import permissions
from chat.conversations.sessions import share, shared_session, unshare
from chat.links import session_url
from chat.models import Message
from projects.permissions import membership

# The maximum number of messages on the page. Of a longer chat, the last messages are shown.
MAX_SHOWN = 300


@require_http_methods(["GET", "POST"])
def share_link(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Create the share link of a chat and show it. With `action=revoke`, revoke it."""
    chat_session = permissions.require_chat(
        permissions.session_for_managing(request.user, pk, slug=slug)
    )
    if request.method == "GET":
        return redirect(session_url(chat_session))
    if request.POST.get("action") == "revoke":
        unshare(chat_session)
        messages.success(request, _("The link no longer works."))
        return redirect(session_url(chat_session))
    share(chat_session)
    return redirect("shared-chat", slug, chat_session.share_key)


@require_GET
def shared_chat(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    """Show the chat of a share link to a member of its project, without forms."""
    member = membership(request.user, slug)
    chat_session = shared_session(member.project, key)
    if chat_session is None:
        raise Http404(_("This link is not valid or was revoked."))
    rows = Message.objects.select_related("author")
    shown = rows.path_to(chat_session, chat_session.head_id, MAX_SHOWN)
    context = {
        "project": member.project,
        "membership": member,
        "shared": chat_session,
        "shown": [message for message in shown if message.is_final and not message.deleted_at],
        "may_manage": permissions.may_manage(member, chat_session),
    }
    with timezone.override(member.project.zone):
        response = render(request, "chat/shared.html", context)
    response["X-Robots-Tag"] = "noindex"
    return response
