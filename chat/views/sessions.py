"""The pages of a project's chats."""

from django.core.paginator import Paginator
from django.db import transaction
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat import attachments, permissions
from chat.conversations import edits, search
from chat.conversations.read_state import mark_read
from chat.conversations.sessions import UNDO_WINDOW, delete_session, restore_session, update_session
from chat.forms import MessageForm, NewChatForm, SessionActionsForm, SessionForm
from chat.links import latest_url, message_url, session_url
from chat.model_forms import SessionModelForm
from chat.models import Message, Session, SessionStatus
from chat.prompt.preview import preview
from chat.providers import limits
from chat.providers.booking import Payer
from chat.streaming import sse
from chat.streaming.poller import StreamGrant
from chat.views import presenters
from chat.views.bulk import last_result
from projects.core.errors import ConflictError
from projects.models import Membership
from projects.permissions import membership, project_for_writing

CHATS_PER_PAGE = 50
# The key of the most recently deleted chat in the browser session.
JUST_DELETED = "just_deleted"


@require_GET
def project_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a project: the form for a new chat and the list of chats, archived chats, or matches of
    `q`.

    `?part=chats` returns only the sidebar's list, `?part=progress` the progress of a demo project.
    """
    member = membership(request.user, slug)
    if request.GET.get("part") == "progress":
        return render(request, "chat/_demo_progress.html", {"project": member.project})
    if request.GET.get("part") == "chats":
        context = {"project": member.project, "membership": member}
        return render(request, "chat/_sidebar_chats.html", context)
    return _render_project(request, member, NewChatForm())


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest, slug: str) -> HttpResponse:
    """Create a chat with its first message, and begin the reply to it."""
    if request.method == "GET":
        return redirect("project", slug)
    project = project_for_writing(request.user, slug)
    form = NewChatForm(request.POST, request.FILES)
    chat_session = Session(project=project, creator_id=request.user.pk)
    model_form = SessionModelForm(request.POST, instance=chat_session)
    if form.is_valid() and model_form.is_valid():
        limits.require_within_limits(project, Payer.of(request))
        try:
            with transaction.atomic():
                form.apply_to(chat_session)
                chat_session.save()
                _message, reply = form.post(chat_session, request.user)
        except attachments.ImageRejectedError as error:
            form.add_error("images", str(error))
        else:
            sse.start_reply(reply, Payer.of(request))
            return redirect(latest_url(chat_session))
    member = membership(request.user, slug)
    return _render_project(request, member, form, model_form, status=400)


@require_GET
def session_page(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Show a chat: the latest messages of its active path, or the messages up to the seq `through`.

    A session of notes redirects to the page of notes. `?part=turns&since=SEQ` returns the messages
    from that seq on, and other parts of an open page that change.
    """
    chat_session = permissions.session_for_reading(request.user, pk, slug=slug)
    through = request.GET.get("through")
    if chat_session.is_notes:
        return redirect(_note_url(chat_session, through))
    if "part" in request.GET:
        return _render_update(request, chat_session)
    return _render_session(request, chat_session, MessageForm(), through=through)


@require_GET
def session_events(request: HttpRequest, slug: str, pk) -> HttpResponseBase:
    """Stream the version number of a chat whenever it exceeds the version of the open page."""
    chat_session = permissions.session_for_reading(request.user, pk, slug=slug)
    version = _parse_number(request.GET.get("version", "0"))
    grant = StreamGrant.for_request(request, chat_session)
    return sse.version_stream(chat_session, version, grant)


@require_http_methods(["GET", "POST"])
def post(request: HttpRequest, slug: str, pk) -> HttpResponseBase:
    """Post a message and begin the reply. Respond with events, or redirect to the page."""
    if request.method == "GET":
        return redirect("session", slug, pk)
    chat_session = permissions.session_for_writing(request.user, pk, slug=slug)
    permissions.require_open(chat_session)
    form = MessageForm(request.POST, request.FILES)
    if form.is_valid():
        limits.require_within_limits(chat_session.project, Payer.of(request))
        try:
            return presenters.answer(request, [*form.post(chat_session, request.user)])
        except attachments.ImageRejectedError as error:
            form.add_error("images", str(error))
    if presenters.accepts_events(request):
        return JsonResponse({"detail": next(iter(form.errors.values()))[0]}, status=400)
    return _render_session(request, chat_session, form, status=400)


@require_GET
def prompt_preview(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Show the prompt of the next reply by section. `?part` returns only the drawer."""
    chat_session = permissions.session_for_reading(request.user, pk, slug=slug)
    permissions.require_chat(chat_session)
    context = {"prompt": preview(chat_session, "", request.user, Payer.of(request))}
    return presenters.drawer(request, chat_session, "chat/_prompt.html", _("Context"), context)


@require_http_methods(["GET", "POST"])
def update(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Change the settings of a chat."""
    if request.method == "GET":
        return redirect("session", slug, pk)
    chat_session = permissions.session_for_managing(request.user, pk, slug=slug)
    form = SessionForm(request.POST, instance=chat_session)
    if not form.is_valid():
        return _render_session(request, chat_session, MessageForm(), settings=form, status=400)
    update_session(chat_session, by=request.user, **form.changes())
    return redirect(session_url(chat_session))


@require_http_methods(["GET", "POST"])
def organise(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Rename, tag, pin or archive a chat from a list, and return to the list.

    `?part` returns only the menu.
    """
    chat_session = permissions.session_for_managing(request.user, pk, slug=slug)
    data = request.POST if request.method == "POST" else None
    # The ids differ from those of the other forms on the page.
    form = SessionActionsForm(
        data,
        initial={"title": chat_session.title, "tags": ", ".join(chat_session.tags)},
        auto_id="keep_%s",
    )
    back = request.POST.get("back") or request.headers.get("referer", "")
    is_ours = url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure())
    # `redirect` would treat a text without a slash as the name of a view.
    if not is_ours or "/" not in back or "/keep/" in back:
        back = resolve_url("project", slug)
    if form.is_bound and form.is_valid():
        update_session(chat_session, by=request.user, **form.changes())
        return redirect(back)
    context = presenters.page_context(request, chat_session) | {"form": form, "back": back}
    template = "chat/_chat_menu.html" if "part" in request.GET else "chat/chat_menu.html"
    return render(request, template, context, status=400 if form.is_bound else 200)


@require_POST
def reopen(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Reopen a closed chat."""
    chat_session = permissions.session_for_managing(request.user, pk, slug=slug)
    update_session(chat_session, status=SessionStatus.ACTIVE)
    return redirect(latest_url(chat_session))


@require_http_methods(["GET", "POST"])
def clear(request: HttpRequest, slug: str, pk) -> HttpResponseBase:
    """Delete all messages of a chat, after a confirmation."""
    chat_session = permissions.session_for_managing(request.user, pk, slug=slug)
    if request.method == "GET":
        return _render_confirmation(request, chat_session, "clear")
    try:
        edits.clear(chat_session)
    except ConflictError as error:
        return presenters.conflict(request, chat_session, error)
    return redirect(session_url(chat_session))


@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Delete a chat, after a confirmation."""
    chat_session = permissions.session_for_managing(request.user, pk, slug=slug)
    if request.method == "GET":
        return _render_confirmation(request, chat_session, "delete")
    delete_session(chat_session)
    request.session[JUST_DELETED] = str(chat_session.pk)
    return redirect("project", slug)


@require_POST
def restore(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """Undo the deletion of a chat within UNDO_WINDOW."""
    deleted = permissions.deleted_session_for_managing(request.user, pk)
    if deleted.project.slug != slug or restore_session(deleted.pk) is None:
        raise Http404(_("This chat was deleted too long ago to restore it."))
    return redirect("session", slug, pk)


def _render_confirmation(request: HttpRequest, chat_session: Session, what: str) -> HttpResponse:
    context = presenters.page_context(request, chat_session) | {"what": what}
    return render(request, "chat/confirm.html", context)


def _render_project(
    request: HttpRequest,
    member: Membership,
    form: NewChatForm,
    model_form: SessionModelForm | None = None,
    status: int = 200,
) -> HttpResponse:
    query = request.GET.get("q", "").replace("\0", "").strip()[: search.MAX_QUERY_CHARS]
    archived = "archived" in request.GET
    chats = permissions.sessions_for(request.user).chats().filter(project=member.project)
    tag = request.GET.get("tag", "").replace("\0", "")
    if query:
        listed = search.search_sessions(chats, query)
    else:
        listed = chats.filter(archived_at__isnull=not archived)
    if tag:
        listed = listed.filter(tags__contains=[tag])
    ordered = listed.select_related("creator").order_by("-pinned", "-last_activity_at", "-id")
    page = Paginator(ordered, CHATS_PER_PAGE).get_page(request.GET.get("page"))
    excerpts = search.excerpts(page, query) if query else {}
    is_start = page.number == 1 and not (query or archived or tag)
    if is_start and member.may_write and model_form is None:
        model_form = SessionModelForm(instance=Session(project=member.project))
    # The chat that was deleted last in this browser; None if it cannot be restored any more.
    just_deleted = None
    if deleted := request.session.get(JUST_DELETED):
        just_deleted = Session.objects.filter(
            pk=deleted, project=member.project, deleted_at__gte=Now() - UNDO_WINDOW
        ).first()
    context = {
        "project": member.project,
        "membership": member,
        "chats": page,
        "manageable": {
            chat.pk for chat in page if member.may_write and permissions.may_manage(member, chat)
        },
        "query": query,
        "matches": [(chat_session, excerpts.get(chat_session.pk)) for chat_session in page]
        if query
        else [],
        "archived": archived,
        "tag": tag,
        "tags": search.used_tags(chats.filter(archived_at__isnull=not archived)),
        "any_archived": chats.filter(archived_at__isnull=False).exists(),
        "form": form,
        "is_start": is_start,
        "model_form": model_form,
        "just_deleted": just_deleted,
        "just_changed": last_result(request, member.project),
    }
    return render(request, "chat/project.html", context, status=status)


def _render_session(
    request: HttpRequest,
    chat_session: Session,
    form: MessageForm,
    settings: SessionForm | None = None,
    through: str | None = None,
    status: int = 200,
) -> HttpResponse:
    if through is None:
        mark_read(chat_session, request.user)
    context = presenters.page_context(request, chat_session)
    member = membership(request.user, chat_session.project.slug)
    head = _message_at(chat_session, through).pk if through else chat_session.head_id
    turns = presenters.path_turns(chat_session, member, head)
    context |= {
        "turns": turns,
        "usage": presenters.usage(chat_session),
        "limit_warnings": limits.warnings(chat_session.project, Payer.of(request)),
        "through": through,
        "is_streaming": any(not turn.message.is_final for turn in turns),
        "form": form,
        "settings": settings or SessionForm(instance=chat_session),
    }
    return render(request, "chat/session.html", context, status=status)


def _render_update(request: HttpRequest, chat_session: Session) -> HttpResponse:
    member = membership(request.user, chat_session.project.slug)
    since = _parse_number(request.GET.get("since", "1"))
    mark_read(chat_session, request.user)
    context = presenters.session_context(chat_session, member) | {
        "turns": presenters.path_turns(chat_session, member, chat_session.head_id, since),
        "usage": presenters.usage(chat_session),
        "form": MessageForm(),
        "settings": SessionForm(instance=chat_session),
    }
    return render(request, "chat/_page_update.html", context)


def _note_url(notes: Session, through: str | None) -> str:
    """Return the URL of the note with the seq `through`. Links to chats may lead to notes too."""
    if not through:
        return session_url(notes)
    note = _message_at(notes, through)
    note.session = notes
    return message_url(note)


def _message_at(chat_session: Session, seq: str) -> Message:
    return get_object_or_404(chat_session.messages, seq=_parse_number(seq))


def _parse_number(text: str) -> int:
    """Return a seq or version as a number. Raises Http404 for any other text."""
    if not text.isdecimal() or len(text) > 9:
        raise Http404
    return int(text)
