"""How the pages of a chat are put together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import blake2s

from django.contrib import messages
from django.db.models import Sum
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.middleware.csrf import get_token
from django.shortcuts import redirect, resolve_url
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from chat import access
from chat.admission import Grant
from chat.api import streaming
from chat.models import Message, Session
from chat.models.sessions import SessionStatus
from chat.reading import Company, company, unread
from chat.templatetags.markup import markdown
from projects.access import membership
from projects.models import Membership, Project

# The latest messages that one page shows; earlier ones are a link away.
MESSAGES_A_PAGE = 50
# The most that a page that was open for long is brought up to date with.
MESSAGES_A_FRAGMENT = 500
# The chats beside a page at first, so many more when one scrolls to their end, and at most; the
# project's page has the others.
CHATS_IN_THE_SIDEBAR = 40
MORE_CHATS = 200
MOST_CHATS_IN_THE_SIDEBAR = 1_000
EMOJI = ("👍", "👎", "❤️", "😄", "🎉", "🤔", "👀", "✅")


@dataclass(frozen=True)
class Shown:
    """A message as a page shows it to one reader."""

    message: Message
    company: Company
    # The day that it opens, in the project's zone; None when the one above it is of the same.
    day: date | None
    may_change: bool
    # Whether it may be answered: not in a chat that is closed, nor in notes.
    may_write: bool

    @property
    def key(self) -> str:
        """Another one whenever the turn looks different."""
        said = (self.message.version, self.message.status)
        looks = (*said, self.company, self.day, self.may_change, self.may_write)
        return blake2s(repr(looks).encode(), digest_size=8).hexdigest()


def shown(
    chat_session: Session,
    messages: Sequence[Message],
    member: Membership,
    above: date | None = None,
) -> list[Shown]:
    """`messages`, which follow each other below the day `above`, for the page of `member`."""
    around = company(messages, member.user)
    writes = may_write(chat_session, member)
    zone = member.project.zone
    found: list[Shown] = []
    for message in messages:
        day = timezone.localdate(message.created_at, zone)
        found.append(
            Shown(
                message,
                around[message.pk],
                day if day != above else None,
                access.may_change(member, message),
                writes,
            )
        )
        above = day
    return found


def _day_above(message: Message, zone) -> date | None:
    said = Message.objects.filter(children=message.pk).values_list("created_at", flat=True)
    moment = said.first()
    return timezone.localdate(moment, zone) if moment else None


def turns(chat_session: Session, member: Membership, head, since: int | None = None) -> list[Shown]:
    """The path down to the id `head`: a page of it, or all from the seq `since` on."""
    # No path has more messages than the session has places.
    most = MESSAGES_A_PAGE if since is None else chat_session.last_seq - since + 1
    rows = Message.objects.select_related("author").prefetch_related("attachments")
    path = rows.path_to(chat_session, head, min(most, MESSAGES_A_FRAGMENT))
    return shown(chat_session, [one for one in path if one.seq >= (since or 1)], member)


def url(chat_session: Session) -> str:
    """Where it is read: notes stand on one page with those of all others."""
    slug = chat_session.project.slug
    if chat_session.is_notes:
        return resolve_url("notes", slug)
    return resolve_url("session", slug, chat_session.pk)


def latest(chat_session: Session) -> str:
    return f"{url(chat_session)}#latest"


def at(message: Message) -> str:
    """The page of the chat, or that of the notes, at this message."""
    if message.session.is_notes:
        return f"{url(message.session)}?at={message.pk}#note-{message.pk}"
    return f"{url(message.session)}#m{message.seq}"


def to_read(request: HttpRequest, slug: str, pk) -> Session:
    """The session `pk` of the project `slug`, or Http404."""
    return _in_project(access.session_for_reading(request.user, pk), slug)


def to_speak_in(request: HttpRequest, slug: str, pk) -> Session:
    """As `to_read`, for those who may write, while the chat is open and no notes."""
    return unless_closed(_in_project(access.session_for_writing(request.user, pk), slug))


def to_manage(request: HttpRequest, slug: str, pk) -> Session:
    """As `to_read`, for its creator and the project's owners."""
    return _in_project(access.session_for_managing(request.user, pk), slug)


def _in_project(chat_session: Session, slug: str) -> Session:
    if chat_session.project.slug != slug:
        raise Http404
    return chat_session


def unless_notes(chat_session: Session) -> Session:
    # No page leads there.
    if chat_session.is_notes:
        raise Http404(_("Notes are not answered."))
    return chat_session


def unless_closed(chat_session: Session) -> Session:
    unless_notes(chat_session)
    # The page of a closed chat has nothing to send with: this answers a page that was open before.
    if chat_session.status == SessionStatus.CLOSED:
        raise Http404(_("This chat is closed."))
    return chat_session


def sidebar(request: HttpRequest, project: Project) -> dict[str, object]:
    """The chats beside every page of a project: pinned ones first, archived ones left out; as many
    as the page says in `chats` that it shows, and how many it would show next.
    """
    chats = access.sessions_for(request.user).chats().filter(project=project, archived_at=None)
    chats = unread(chats, request.user).order_by("-pinned", "-last_activity_at", "-id")
    asked = request.GET.get("chats", "")
    many = int(asked) if asked.isdecimal() and len(asked) < 5 else 0
    many = min(max(many, CHATS_IN_THE_SIDEBAR), MOST_CHATS_IN_THE_SIDEBAR)
    found = list(chats[: many + 1])
    more = many + MORE_CHATS if found[many:] and many < MOST_CHATS_IN_THE_SIDEBAR else None
    return {"sessions": found[:many], "more_chats": more}


def chat_context(request: HttpRequest, chat_session: Session) -> dict[str, object]:
    """What every page of a chat shows: the chat, its project, and the others in the sidebar."""
    member = membership(request.user, chat_session.project.slug)
    beside = sidebar(request, chat_session.project)
    return beside | turn_context(chat_session, member)


def spent(chat_session: Session) -> dict[str, object]:
    """What the answers of a chat took, all branches counted: `tokens` read and written, and `cost`
    in US dollars, None where no price is known.
    """
    read, written = Coalesce(Sum("input_tokens"), 0), Coalesce(Sum("output_tokens"), 0)
    return chat_session.messages.order_by().aggregate(tokens=read + written, cost=Sum("cost"))


def may_write(chat_session: Session, member: Membership) -> bool:
    is_open = chat_session.status == SessionStatus.ACTIVE and not chat_session.is_notes
    return member.may_write and is_open


def turn_context(chat_session: Session, member: Membership) -> dict[str, object]:
    """What a turn needs to know besides itself."""
    return {
        "project": chat_session.project,
        "membership": member,
        "chat_session": chat_session,
        "may_react": member.may_write,
        "may_write": may_write(chat_session, member),
        "may_manage": access.may_manage(member, chat_session),
        "emoji": EMOJI,
    }


def answer(request: HttpRequest, said: list[Message]) -> HttpResponseBase:
    """Has the last of `said` said; the reader gets all of them as events, or the page."""
    reply = said[-1]
    streaming.say(reply)
    if not wants_events(request):
        return redirect(latest(reply.session))
    render = renderer(request, reply.session, said)
    return streaming.event_stream(
        reply, Grant.of(request, reply.session), said[0], render, markdown
    )


def wants_events(request: HttpRequest) -> bool:
    return streaming.MEDIA_TYPE in request.headers.get("Accept", "")


def refuse(request: HttpRequest, chat_session: Session, reason: str) -> HttpResponseBase:
    """Tells why something was not done: a script in JSON, a reader on the chat's page."""
    if "part" in request.GET or wants_events(request):
        return JsonResponse({"detail": reason}, status=409)
    messages.error(request, reason)
    return redirect(url(chat_session))


def renderer(
    request: HttpRequest, chat_session: Session, opening: list[Message] | None = None
) -> streaming.Render:
    """Renders a message as the page shows it; the first of `opening` brings the others along."""
    member = membership(request.user, chat_session.project.slug)
    context = turn_context(chat_session, member) | {
        "user": request.user,
        "csrf_token": get_token(request),
    }
    # A stream goes on after the request's middleware, in other threads.
    language = translation.get_language()

    def rendered(message: Message) -> str:
        told = opening if opening and message.pk == opening[0].pk else [message]
        zone = chat_session.project.zone
        with timezone.override(zone), translation.override(language):
            return "".join(
                render_to_string("chat/_turn.html", context | {"shown": one})
                for one in shown(chat_session, told, member, _day_above(message, zone))
            )

    return rendered
