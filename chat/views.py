"""The pages of a project's chats."""

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat import access, attachments, changes, pages, search
from chat import prompt as prompts
from chat.admission import Grant
from chat.api import streaming
from chat.forms import MessageForm, NewChatForm, SessionForm
from chat.models import Message, Session, SessionStatus
from chat.reading import see
from chat.sessions import UNDO_WINDOW, delete_session, restore_session, update_session
from projects.access import membership, project_for_writing
from projects.models import Membership

CHATS_A_PAGE = 50
# In the browser session: the chat that was deleted last.
JUST_DELETED = "just_deleted"


@login_required
@require_GET
def project(request: HttpRequest, slug: str) -> HttpResponse:
    """A project: a place to begin a chat, and the chats there are, those archived, or those with
    the words `q`. `?part=chats` gives the list of chats beside every page.
    """
    member = membership(request.user, slug)
    if request.GET.get("part") == "chats":
        shown = pages.sidebar(request, member.project)
        context = shown | {"project": member.project, "membership": member}
        return render(request, "chat/_sidebar_chats.html", context)
    return _project_page(request, member, NewChatForm())


@login_required
@require_http_methods(["GET", "POST"])
def create(request: HttpRequest, slug: str) -> HttpResponse:
    """Begins a chat with its first message, and has that answered."""
    if request.method == "GET":
        return redirect("project", slug)
    room = project_for_writing(request.user, slug)
    form = NewChatForm(request.POST, request.FILES)
    if not form.is_valid():
        return _project_page(request, membership(request.user, slug), form, status=400)
    try:
        with transaction.atomic():
            chat_session = Session.objects.create(
                project=room,
                creator_id=request.user.pk,
                visibility=form.cleaned_data["visibility"],
                remembered=not form.cleaned_data["unremembered"],
            )
            _asked, reply = form.ask(chat_session, request.user)
    except attachments.Refused as refused:
        form.add_error("images", str(refused))
        return _project_page(request, membership(request.user, slug), form, status=400)
    streaming.say(reply)
    return redirect(pages.latest(chat_session))


@login_required
@require_GET
def session(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """A chat: its latest messages on the path that counts, or those down to the seq `through`.

    One that holds notes is read on their page. `?part=turns&since=SEQ` gives the turns from that
    place on, and what else a page that is open is brought up to date with.
    """
    chat_session = pages.to_read(request, slug, pk)
    through = request.GET.get("through")
    if chat_session.is_notes:
        return redirect(_place_of_note(chat_session, through))
    if "part" in request.GET:
        return _turns(request, chat_session)
    return _session_page(request, chat_session, MessageForm(), through=through)


@login_required
@require_GET
def events(request: HttpRequest, slug: str, pk) -> HttpResponseBase:
    """Tells the page of a chat each `version` above the one that it shows."""
    chat_session = pages.to_read(request, slug, pk)
    version = _number(request.GET.get("version", "0"))
    return streaming.version_stream(chat_session, version, Grant.of(request, chat_session))


@login_required
@require_http_methods(["GET", "POST"])
def post(request: HttpRequest, slug: str, pk) -> HttpResponseBase:
    """Says something in a chat and has it answered: as events, or by way of the page."""
    if request.method == "GET":
        return redirect("session", slug, pk)
    chat_session = pages.to_speak_in(request, slug, pk)
    form = MessageForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            return pages.answer(request, [*form.ask(chat_session, request.user)])
        except attachments.Refused as refused:
            form.add_error("images", str(refused))
    if pages.wants_events(request):
        return JsonResponse({"detail": next(iter(form.errors.values()))[0]}, status=400)
    return _session_page(request, chat_session, form, status=400)


@login_required
@require_GET
def prompt(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """What the next reply would be told, section by section; `?part` gives the drawer alone."""
    chat_session = pages.unless_notes(pages.to_read(request, slug, pk))
    template = "chat/_prompt.html" if "part" in request.GET else "chat/prompt.html"
    context = pages.chat_context(request, chat_session)
    return render(
        request, template, context | {"prompt": prompts.preview(chat_session, "", request.user)}
    )


@login_required
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Changes how a chat is kept: its title, its readers, its place, whether it goes on."""
    if request.method == "GET":
        return redirect("session", slug, pk)
    chat_session = pages.to_manage(request, slug, pk)
    form = SessionForm(request.POST, instance=chat_session)
    if not form.is_valid():
        return _session_page(request, chat_session, MessageForm(), settings=form, status=400)
    update_session(chat_session, **form.changes())
    return redirect(pages.url(chat_session))


@login_required
@require_POST
def reopen(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Lets a closed chat go on."""
    chat_session = pages.to_manage(request, slug, pk)
    update_session(chat_session, status=SessionStatus.ACTIVE)
    return redirect(pages.latest(chat_session))


@login_required
@require_http_methods(["GET", "POST"])
def clear(request: HttpRequest, slug: str, pk) -> HttpResponseBase:
    """Asks, and then deletes all that was said in a chat."""
    chat_session = pages.to_manage(request, slug, pk)
    if request.method == "GET":
        return _confirm(request, chat_session, "clear")
    try:
        changes.clear(chat_session)
    except changes.Refused as refused:
        return pages.refuse(request, chat_session, str(refused))
    return redirect(pages.url(chat_session))


@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Asks, and then deletes a chat."""
    chat_session = pages.to_manage(request, slug, pk)
    if request.method == "GET":
        return _confirm(request, chat_session, "delete")
    delete_session(chat_session)
    request.session[JUST_DELETED] = str(chat_session.pk)
    return redirect("project", slug)


@login_required
@require_POST
def restore(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Takes the deletion of a chat back, as long as that is possible."""
    deleted = access.deleted_session_for_managing(request.user, pk)
    if deleted.project.slug != slug or restore_session(deleted.pk) is None:
        raise Http404(_("This chat was deleted too long ago."))
    return redirect("session", slug, pk)


def _just_deleted(request: HttpRequest, member: Membership) -> Session | None:
    """The chat that whoever asks deleted last in this browser, while it can be brought back."""
    pk = request.session.get(JUST_DELETED)
    if pk is None:
        return None
    in_time = Session.objects.filter(
        pk=pk, project=member.project, deleted_at__gte=Now() - UNDO_WINDOW
    )
    return in_time.first()


def _confirm(request: HttpRequest, chat_session: Session, what: str) -> HttpResponse:
    context = pages.chat_context(request, chat_session)
    return render(request, "chat/confirm.html", context | {"what": what})


def _project_page(
    request: HttpRequest, member: Membership, form: NewChatForm, status: int = 200
) -> HttpResponse:
    query = request.GET.get("q", "").replace("\0", "").strip()[: search.LONGEST]
    archived = "archived" in request.GET
    chats = access.sessions_for(request.user).chats().filter(project=member.project)
    if query:
        listed = search.containing(chats, query)
    else:
        listed = chats.filter(archived_at__isnull=not archived)
    ordered = listed.select_related("creator").order_by("-pinned", "-last_activity_at", "-id")
    page = Paginator(ordered, CHATS_A_PAGE).get_page(request.GET.get("page"))
    excerpts = search.excerpts(page, query) if query else {}
    context = pages.sidebar(request, member.project) | {
        "project": member.project,
        "membership": member,
        "chats": page,
        "query": query,
        "found": [(one, excerpts.get(one.pk)) for one in page] if query else [],
        "archived": archived,
        "any_archived": chats.filter(archived_at__isnull=False).exists(),
        "form": form,
        "just_deleted": _just_deleted(request, member),
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
    if through is None:
        see(chat_session, request.user)
    context = pages.chat_context(request, chat_session)
    member = membership(request.user, chat_session.project.slug)
    head = _message_at(chat_session, through).pk if through else chat_session.head_id
    turns = pages.turns(chat_session, member, head)
    context |= {
        "turns": turns,
        "spent": pages.spent(chat_session),
        "through": through,
        "under_way": any(not one.message.is_final for one in turns),
        "form": form,
        "settings": settings or SessionForm(instance=chat_session),
    }
    return render(request, "chat/session.html", context, status=status)


def _turns(request: HttpRequest, chat_session: Session) -> HttpResponse:
    member = membership(request.user, chat_session.project.slug)
    since = _number(request.GET.get("since", "1"))
    see(chat_session, request.user)
    context = pages.sidebar(request, chat_session.project)
    context |= pages.turn_context(chat_session, member) | {
        "turns": pages.turns(chat_session, member, chat_session.head_id, since),
        "spent": pages.spent(chat_session),
        "form": MessageForm(),
        "settings": SessionForm(instance=chat_session),
    }
    return render(request, "chat/_live.html", context)


def _place_of_note(notes: Session, through: str | None) -> str:
    """Where the note is read that links to chats call the message `through`."""
    if not through:
        return pages.url(notes)
    note = _message_at(notes, through)
    note.session = notes
    return pages.at(note)


def _message_at(chat_session: Session, seq: str) -> Message:
    return get_object_or_404(chat_session.messages, seq=_number(seq))


def _number(text: str) -> int:
    """A place or a version. Raises Http404 for what is none."""
    if not text.isdecimal() or len(text) > 9:
        raise Http404
    return int(text)
