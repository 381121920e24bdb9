"""The pages of a project's chats."""

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.middleware.csrf import get_token
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from chat import access, replies
from chat import prompt as prompts
from chat.api import streaming
from chat.api.serializers import SessionSerializer
from chat.forms import MessageForm, NewChatForm, SessionForm
from chat.models import Message, Role, Session
from chat.models.sessions import SessionStatus
from chat.paths import path_to
from projects.access import membership, project_for_writing
from projects.models import Membership
from projects.models import Role as MemberRole

# The latest messages that one page shows; earlier ones are a link away.
MESSAGES_A_PAGE = 100
CHATS_A_PAGE = 50
CHATS_IN_THE_SIDEBAR = 40


@login_required
@require_GET
def project(request: HttpRequest, slug: str) -> HttpResponse:
    """A project: a place to begin a chat, and the chats there are."""
    return _project_page(request, membership(request.user, slug), NewChatForm())


@login_required
@require_POST
def create(request: HttpRequest, slug: str) -> HttpResponse:
    """Begins a chat with its first message, and has that answered."""
    room = project_for_writing(request.user, slug)
    form = NewChatForm(request.POST)
    if not form.is_valid():
        return _project_page(request, membership(request.user, slug), form, status=400)
    chat_session = Session.objects.create(
        project=room, creator_id=request.user.pk, visibility=form.cleaned_data["visibility"]
    )
    _asked, reply = replies.ask(chat_session, form.cleaned_data["content"], request.user)
    streaming.say(reply)
    return redirect(_latest(chat_session))


@login_required
@require_GET
def session(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """A chat: its latest messages on the path that counts, or those down to the seq `through`."""
    chat_session = _to_read(request, slug, pk)
    through = request.GET.get("through")
    return _session_page(request, chat_session, MessageForm(), through=through)


@login_required
@require_POST
def post(request: HttpRequest, slug: str, pk) -> HttpResponseBase:
    """Says something in a chat and has it answered: as events, or by way of the page."""
    chat_session = _to_speak_in(request, slug, pk)
    form = MessageForm(request.POST)
    if not form.is_valid():
        if _wants_events(request):
            return JsonResponse({"detail": form.errors["content"][0]}, status=400)
        return _session_page(request, chat_session, form, status=400)
    asked, reply = replies.ask(chat_session, form.cleaned_data["content"], request.user)
    return _answer(request, [asked, reply])


@login_required
@require_POST
def regenerate(request: HttpRequest, pk) -> HttpResponseBase:
    """Answers a message once more; the new reply counts from then on."""
    spoken = access.message_for_writing(request.user, pk)
    asked = spoken.parent
    if spoken.role != Role.ASSISTANT or asked is None or not spoken.is_final:
        raise Http404
    asked.session = _unless_closed(spoken.session)
    return _answer(request, [replies.begin_reply(asked)])


@login_required
@require_GET
def stream(request: HttpRequest, pk) -> HttpResponseBase:
    """Follows a reply that is being said, for whoever opens the page meanwhile."""
    reply = get_object_or_404(Message, pk=pk)
    chat_session = access.session_for_reading(request.user, reply.session_id)
    return streaming.event_stream(reply, render=_turns(request, chat_session))


@login_required
@require_GET
def prompt(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """What the next reply would be told, section by section; `?part` gives the drawer alone."""
    chat_session = _to_read(request, slug, pk)
    template = "chat/_prompt.html" if "part" in request.GET else "chat/prompt.html"
    context = _chat_context(request, chat_session)
    return render(
        request, template, context | {"prompt": prompts.preview(chat_session, "", request.user)}
    )


@login_required
@require_POST
def edit(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Renames a chat, shares it, keeps it out of memory, closes it or opens it again."""
    chat_session = _to_manage(request, slug, pk)
    form = SessionForm(request.POST, instance=chat_session)
    if not form.is_valid():
        return _session_page(request, chat_session, MessageForm(), settings=form, status=400)
    SessionSerializer().update(chat_session, form.cleaned_data)
    return redirect(_url(chat_session))


def _url(chat_session: Session) -> str:
    return resolve_url("session", chat_session.project.slug, chat_session.pk)


def _latest(chat_session: Session) -> str:
    return f"{_url(chat_session)}#latest"


def _to_read(request: HttpRequest, slug: str, pk) -> Session:
    """The session `pk` of the project `slug`, or Http404."""
    chat_session = access.session_for_reading(request.user, pk)
    if chat_session.project.slug != slug:
        raise Http404
    return chat_session


def _to_speak_in(request: HttpRequest, slug: str, pk) -> Session:
    """As `_to_read`, for those who may write, while the chat is open."""
    _to_read(request, slug, pk)
    return _unless_closed(access.session_for_writing(request.user, pk))


def _unless_closed(chat_session: Session) -> Session:
    # The page of a closed chat has nothing to send with: this answers a page that was open before.
    if chat_session.status == SessionStatus.CLOSED:
        raise Http404(_("This chat is closed."))
    return chat_session


def _to_manage(request: HttpRequest, slug: str, pk) -> Session:
    """As `_to_read`, for its creator and the project's owners."""
    chat_session = _to_read(request, slug, pk)
    if not _may_manage(membership(request.user, slug), chat_session):
        raise Http404
    return chat_session


def _may_manage(member: Membership, chat_session: Session) -> bool:
    return member.role == MemberRole.OWNER or (
        member.may_write and chat_session.creator_id == member.user_id
    )


def _answer(request: HttpRequest, turns: list[Message]) -> HttpResponseBase:
    """Has the last of `turns` said; the reader gets all of them as events, or the page."""
    reply = turns[-1]
    streaming.say(reply)
    if not _wants_events(request):
        return redirect(_latest(reply.session))
    return streaming.event_stream(reply, turns[0], _turns(request, reply.session, turns))


def _wants_events(request: HttpRequest) -> bool:
    return streaming.MEDIA_TYPE in request.headers.get("Accept", "")


def _turns(request: HttpRequest, chat_session: Session, opening: list[Message] | None = None):
    """Renders a message as the page shows it; the first of `opening` brings the others along."""
    context = {
        "user": request.user,
        "project": chat_session.project,
        "chat_session": chat_session,
        "may_write": membership(request.user, chat_session.project.slug).may_write,
        "csrf_token": get_token(request),
    }

    def rendered(message: Message) -> str:
        shown = opening if opening and message.pk == opening[0].pk else [message]
        with timezone.override(chat_session.project.zone):
            return "".join(
                render_to_string("chat/_turn.html", context | {"message": one, "last": True})
                for one in shown
            )

    return rendered


def _project_page(
    request: HttpRequest, member: Membership, form: NewChatForm, status: int = 200
) -> HttpResponse:
    chats = access.sessions_for(request.user).filter(project=member.project).newest_first()
    pages = Paginator(chats.select_related("creator"), CHATS_A_PAGE)
    context = {
        "project": member.project,
        "membership": member,
        "sessions": chats[:CHATS_IN_THE_SIDEBAR],
        "chats": pages.get_page(request.GET.get("page")),
        "form": form,
    }
    return render(request, "chat/project.html", context, status=status)


def _session_page(
    request: HttpRequest,
    chat_session: Session,
    form: MessageForm,
    settings: SessionForm | None = None,
    through: str | None = None,
    status: int = 200,
) -> HttpResponse:
    context = _chat_context(request, chat_session)
    head = _message_at(chat_session, through) if through else chat_session.head
    shown = _path(chat_session, head)
    context |= {
        "turns": shown,
        "through": through,
        "more": bool(shown and shown[0].parent_id),
        "under_way": any(not message.is_final for message in shown),
        "form": form,
        "settings": settings or SessionForm(instance=chat_session),
    }
    return render(request, "chat/session.html", context, status=status)


def _chat_context(request: HttpRequest, chat_session: Session) -> dict[str, object]:
    """What every page of a chat shows: the chat, its project, and the others in the sidebar."""
    member = membership(request.user, chat_session.project.slug)
    chats = access.sessions_for(request.user).filter(project=chat_session.project)
    return {
        "project": chat_session.project,
        "membership": member,
        "chat_session": chat_session,
        "sessions": chats.newest_first()[:CHATS_IN_THE_SIDEBAR],
        "may_write": member.may_write and chat_session.status == SessionStatus.ACTIVE,
        "may_manage": _may_manage(member, chat_session),
    }


def _path(chat_session: Session, head: Message | None) -> list[Message]:
    """The messages on the path down to `head`, oldest first, no more than a page of them."""
    if head is None:
        return []
    reach = chat_session.messages.select_related("author").filter(seq__lte=head.seq)
    return path_to(reach.order_by("-seq")[:MESSAGES_A_PAGE], head.pk)


def _message_at(chat_session: Session, seq: str) -> Message:
    if not seq.isdecimal():
        raise Http404
    return get_object_or_404(chat_session.messages, seq=int(seq))
