"""Template contexts and responses that several pages of a chat use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import blake2s

from django.contrib import messages as flash_messages
from django.db.models import Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils import timezone, translation

from chat import permissions
from chat.conversations.lookups import TRUNCATED
from chat.conversations.read_state import MessageRelations, message_relations
from chat.links import latest_url, session_url
from chat.models import Message, Session, Status
from chat.prompt.types import Lookup
from chat.providers.booking import Payer
from chat.streaming import sse
from chat.streaming.poller import StreamGrant
from chat.templatetags.markup import markdown
from projects.models import Membership
from projects.permissions import membership

# The maximum number of messages on a page. A link leads to earlier messages.
MESSAGES_PER_PAGE = 50
# The maximum number of messages in an update of an open page.
MAX_UPDATE_MESSAGES = 500
EMOJI = ("👍", "👎", "❤️", "😄", "🎉", "🤔", "👀", "✅")


@dataclass(frozen=True)
class TurnContext:
    """A message as one reader sees it.

    `day` is set for the first message of each day, in the project's zone. `may_write` is true if
    the reader may answer the message.
    """

    message: Message
    relations: MessageRelations
    day: date | None
    may_change: bool
    may_write: bool

    @property
    def may_continue(self) -> bool:
        """Whether the reader may have a reply continued that reached its maximum length."""
        return (
            self.may_write
            and self.message.status == Status.COMPLETE
            and TRUNCATED in self.message.error
        )

    @property
    def key(self) -> str:
        """A digest that changes whenever the rendered message changes."""
        state = (self.message.version, self.message.status)
        look = (*state, self.relations, self.day, self.may_change, self.may_write)
        return blake2s(repr(look).encode(), digest_size=8).hexdigest()


def turn_contexts(
    chat_session: Session,
    messages: Sequence[Message],
    member: Membership,
    previous_day: date | None = None,
) -> list[TurnContext]:
    """Return the contexts of consecutive messages. `previous_day` is that of the message before."""
    relations = message_relations(messages, member.user)
    may_write = permissions.may_post(member, chat_session)
    zone = member.project.zone
    turns: list[TurnContext] = []
    for message in messages:
        day = timezone.localdate(message.created_at, zone)
        turns.append(
            TurnContext(
                message,
                relations[message.pk],
                day if day != previous_day else None,
                permissions.may_change(member, message),
                may_write,
            )
        )
        previous_day = day
    return turns


def path_turns(
    chat_session: Session, member: Membership, head, since: int | None = None
) -> list[TurnContext]:
    """Return the last page of the path to `head`, or its latest messages from seq `since` on."""
    # A path has at most as many messages as the session.
    limit = MESSAGES_PER_PAGE if since is None else chat_session.last_seq - since + 1
    rows = Message.objects.select_related("author").prefetch_related("attachments")
    path = rows.path_to(chat_session, head, min(limit, MAX_UPDATE_MESSAGES))
    return turn_contexts(
        chat_session, [message for message in path if message.seq >= (since or 1)], member
    )


def page_context(request: HttpRequest, chat_session: Session) -> dict[str, object]:
    """Return the context that every page of a chat needs: the chat and its project."""
    return session_context(chat_session, membership(request.user, chat_session.project.slug))


def drawer(
    request: HttpRequest,
    chat_session: Session,
    template: str,
    title: str,
    context: Mapping[str, object],
    status: int = 200,
) -> HttpResponse:
    """Render the drawer `template` of a chat; without `?part`, on a page with `title`."""
    page = page_context(request, chat_session) | {"drawer": template, "title": title, **context}
    if "part" not in request.GET:
        template = "chat/drawer.html"
    return render(request, template, page, status=status)


def session_context(chat_session: Session, member: Membership) -> dict[str, object]:
    """Return the context that templates of messages need in addition to the message."""
    return {
        "project": chat_session.project,
        "membership": member,
        "chat_session": chat_session,
        "may_react": member.may_write,
        "may_write": permissions.may_post(member, chat_session),
        "may_manage": permissions.may_manage(member, chat_session),
        "emoji": EMOJI,
    }


def usage(chat_session: Session) -> dict[str, object]:
    """Return the sums over all replies on all branches: `tokens`, and `cost` in US dollars.

    `cost` is None if no price is known.
    """
    read, written = Coalesce(Sum("input_tokens"), 0), Coalesce(Sum("output_tokens"), 0)
    return chat_session.messages.order_by().aggregate(tokens=read + written, cost=Sum("cost"))


def answer(request: HttpRequest, messages: list[Message]) -> HttpResponseBase:
    """Begin the reply, the last of `messages`. Respond with events for all of them, or redirect."""
    reply = messages[-1]
    sse.start_reply(reply, Payer.of(request))
    if not accepts_events(request):
        return redirect(latest_url(reply.session))
    render = turn_renderer(request, reply.session, messages)
    grant = StreamGrant.for_request(request, reply.session)
    return sse.event_stream(
        reply, grant, render, messages[0], markdown, render_lookups=lookup_renderer()
    )


def accepts_events(request: HttpRequest) -> bool:
    return sse.MEDIA_TYPE in request.headers.get("Accept", "")


def conflict(request: HttpRequest, chat_session: Session, reason: object) -> HttpResponseBase:
    """Report why an action is impossible: to a script as JSON, otherwise on the chat's page."""
    if "part" in request.GET or accepts_events(request):
        return JsonResponse({"detail": str(reason)}, status=409)
    flash_messages.error(request, str(reason))
    return redirect(session_url(chat_session))


def lookup_renderer() -> sse.LookupsRenderer:
    """Return a function that renders the lookups of a reply as HTML."""
    language = translation.get_language()

    def render(lookups: Sequence[Lookup]) -> str:
        with translation.override(language):
            return render_to_string("chat/_lookups.html", {"lookups": lookups})

    return render


def turn_renderer(
    request: HttpRequest, chat_session: Session, opening: list[Message] | None = None
) -> sse.MessageRenderer:
    """Return a function that renders a message as HTML.

    For the object `opening[0]`, it renders all messages of `opening`.
    """
    member = membership(request.user, chat_session.project.slug)
    context = session_context(chat_session, member) | {
        "user": request.user,
        "csrf_token": get_token(request),
    }
    # Read the language now, because the stream renders in other threads after the request.
    language = translation.get_language()
    zone = chat_session.project.zone

    def render(message: Message) -> str:
        # A regenerated reply opens its stream and ends it, as another object with its text.
        messages = opening if opening and message is opening[0] else [message]
        parents = Message.objects.filter(children=message.pk)
        parent_time = parents.values_list("created_at", flat=True).first()
        previous_day = timezone.localdate(parent_time, zone) if parent_time else None
        with timezone.override(zone), translation.override(language):
            return "".join(
                render_to_string("chat/_turn.html", context | {"turn": turn})
                for turn in turn_contexts(chat_session, messages, member, previous_day)
            )

    return render
