"""`{% sidebar_chats %}`: the chats that the sidebar of each page lists."""

from django import template

from chat import permissions
from chat.conversations.read_state import with_unread

register = template.Library()

# The number of chats in the sidebar: at first, per load of more chats, and at most. The page of the
# project shows all chats.
SIDEBAR_CHATS = 40
SIDEBAR_STEP = 200
MAX_SIDEBAR_CHATS = 1_000


@register.simple_tag(takes_context=True)
def sidebar_chats(context: template.Context) -> dict[str, object]:
    """Return the chats of the project, pinned ones first, without archived ones.

    The request parameter `chats` is the number of chats that the page already shows. `more` is the
    number of chats that it would show after loading more.
    """
    request = context["request"]
    chats = permissions.sessions_for(request.user).chats()
    chats = chats.filter(project=context["project"], archived_at=None)
    chats = with_unread(chats, request.user).order_by("-pinned", "-last_activity_at", "-id")
    shown = request.GET.get("chats", "")
    count = int(shown) if shown.isdecimal() and len(shown) < 5 else 0
    count = min(max(count, SIDEBAR_CHATS), MAX_SIDEBAR_CHATS)
    sessions = list(chats[: count + 1])
    more = count + SIDEBAR_STEP if sessions[count:] and count < MAX_SIDEBAR_CHATS else None
    return {"sessions": sessions[:count], "more": more}
