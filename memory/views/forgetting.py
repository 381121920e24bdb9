"""The pages of a forget request: choose what to forget, preview, receipt."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, resolve_url
from django.utils.translation import gettext as _

from chat.attachments import file_removal
from chat.importers.jobs import revocation_scope
from chat.models import Import, Message, Session
from chat.permissions import message_for_reading, session_for_reading, sessions_for
from memory.facts import facts_for
from memory.files import access
from memory.forgetting import service
from memory.forgetting.origins import Origins, find_origins
from memory.forgetting.scope import shares_texts
from memory.forgetting.service import ForgetScope
from memory.layers.pending import count_awaiting_rewrite
from memory.models import Activity, ActivityVerb, Entry, Fact, File
from memory.permissions import entries_for, may_forget
from memory.views import project_page, render_page
from memory.views.forms.entries import FORGET_SOURCES, KEEP_SOURCES
from memory.views.forms.forgetting import ForgetForm, ForgetReasonForm
from projects.core.errors import NotAllowedError
from projects.models import Membership
from projects.permissions import WRITERS


@dataclass(frozen=True)
class ForgetTarget:
    """The objects that a scope names. For a message, `session` is its chat."""

    message: Message | None = None
    session: Session | None = None
    entry: Entry | None = None
    fact: Fact | None = None
    upload: Import | None = None
    file: File | None = None


@project_page(get=WRITERS, post=WRITERS)
def forget(request: HttpRequest, member: Membership) -> HttpResponse:
    """Ask for the scope, show a preview, or forget and redirect to the receipt."""
    project = member.project
    data = request.POST if request.method == "POST" else request.GET
    form = ForgetForm(project, data or None)
    if not form.is_valid():
        return _scope_page(request, member, form)
    scope = form.scope()
    target = _target(member, scope)
    reason = ForgetReasonForm(request.POST or None)
    if request.method == "POST" and "preview" not in request.POST and reason.is_valid():
        receipt = service.forget(project, scope, request.user, reason.cleaned_data["reason"])
        return redirect("memory-receipt", project.slug, receipt.id)
    context = {
        "form": form,
        "target": target,
        "reason": reason,
        **_previews(member, form, scope),
        "origins": _origins(member, scope),
        "reach": revocation_scope(target.upload) if target.upload else None,
        "keep_url": _page_of(target, project.slug),
    }
    return render_page(request, member, "forget.html", context, 400 if reason.errors else 200)


def _previews(member: Membership, form: ForgetForm, scope: ForgetScope) -> dict[str, object]:
    """Return a preview receipt for each answer to the question whether to forget the original
    messages.

    There is only one receipt if the question is not asked: if there are no such messages, or if the
    member may not forget them. `originals` are the messages that the question is about.
    """
    scopes = {KEEP_SOURCES: scope}
    if form.asks_for_sources:
        scopes = {
            FORGET_SOURCES: replace(scope, sources=True),
            KEEP_SOURCES: replace(scope, sources=False),
        }
    totals = {
        answer: service.preview(member.project, variant, member.user)
        for answer, variant in scopes.items()
        if variant.is_permitted_to(member)
    }
    originals = 0
    if FORGET_SOURCES in totals:
        originals = totals[FORGET_SOURCES].removed.get("messages", 0)
        if not originals:
            del totals[FORGET_SOURCES]
    keeps = "sources" in form.data and not scope.sources
    return {
        "totals": totals,
        "originals": originals,
        "answer": KEEP_SOURCES if keeps else FORGET_SOURCES,
        "exposed": any(total.saw_it for total in totals.values()),
    }


def _scope_page(request: HttpRequest, member: Membership, form: ForgetForm) -> HttpResponse:
    """Show the form in which an owner chooses a user or a time."""
    if not may_forget(member):
        raise Http404
    people = member.project.memberships.select_related("user").order_by("user__username")
    context = {"form": form, "people": [person.user.get_username() for person in people]}
    return render_page(request, member, "forget_scope.html", context, 400 if form.errors else 200)


def _target(member: Membership, scope: ForgetScope) -> ForgetTarget:
    """Return the objects in `scope`. Raises Http404 if the member may not see or forget one, and
    NotAllowedError if this is everything of their own.
    """
    message = message_for_reading(member.user, scope.message) if scope.message else None
    session = session_for_reading(member.user, scope.session) if scope.session else None
    entry = get_object_or_404(entries_for(member), pk=scope.entry) if scope.entry else None
    facts = facts_for(member).current()
    fact = get_object_or_404(facts, pk=scope.fact) if scope.fact else None
    uploads = member.project.imports.select_related("user")
    upload = get_object_or_404(uploads, pk=scope.upload) if scope.upload else None
    file = access.file_for_reading(member.user, member.project, scope.file) if scope.file else None
    sessions = [session, *(part.session for part in (message, entry) if part is not None)]
    if not scope.is_permitted_to(member):
        is_own = scope.user == member.user_id and not scope.names_object
        if is_own and shares_texts(member):
            raise NotAllowedError(
                _(
                    "You have changed texts that others also wrote. Only an owner can forget "
                    "everything of yours."
                )
            )
        raise Http404
    if any(chat is not None and chat.project_id != member.project_id for chat in sessions):
        raise Http404
    session = session or (message.session if message else None)
    return ForgetTarget(message, session, entry, fact, upload, file)


def _page_of(target: ForgetTarget, slug: str) -> str:
    """Return the page to which Cancel leads: that of the target, or without one the memory page."""
    if target.message:
        seq = target.message.seq
        url = resolve_url("session", slug, target.message.session_id)
        return f"{url}?through={seq}#m{seq}"
    if target.session:
        return resolve_url("session", slug, target.session.pk)
    if target.entry:
        return resolve_url("entry", slug, target.entry.pk)
    if target.fact:
        return resolve_url("fact", slug, target.fact.pk)
    if target.file:
        return resolve_url("file", slug, target.file.pk)
    return resolve_url("imports" if target.upload else "memory", slug)


def _origins(member: Membership, scope: ForgetScope) -> Origins:
    """Return the users, chats and imports behind the scope that the member may forget as a whole.

    Owners use this to remove everything that came from a malicious source.
    """
    sources = find_origins(member.project, scope)
    ids = [session.pk for session in sources.sessions]
    readable = set(sessions_for(member.user).filter(pk__in=ids))

    def allowed(**fields: object) -> bool:
        return ForgetScope(**fields).is_permitted_to(member)  # type: ignore[arg-type]

    return Origins(
        [user for user in sources.people if allowed(user=user.pk)],
        [
            session
            for session in sources.sessions
            if session in readable and allowed(session=session.pk)
        ],
        [upload for upload in sources.uploads if allowed(upload=upload.pk)],
    )


@project_page()
def forget_receipt(request: HttpRequest, member: Membership, pk) -> HttpResponse:
    """Show what was removed and what is pending. `?part` returns only the pending items."""
    acts = Activity.objects.filter(project=member.project, verb=ActivityVerb.FORGOTTEN)
    act = get_object_or_404(acts.select_related("by"), pk=pk)
    context = {
        "act": act,
        "waiting": count_awaiting_rewrite(act),
        "files": file_removal.count_pending_removals(act.project_id, act.pk),
    }
    if "part" in request.GET:
        return render_page(request, member, "_rewrite_progress.html", context)
    reply_ids = [UUID(pk) for pk in act.receipt.get("saw_it", [])]
    search = act.receipt.get("search", {})
    replies = _readable_messages(member, reply_ids)
    kept = act.receipt.get("kept_sources", [])
    kept_messages = _readable_messages(member, [UUID(pk) for pk in kept]) if kept else []
    context |= {
        "phrases": search.get("phrases", 0),
        "kept": len(kept),
        "kept_messages": kept_messages,
        "kept_elsewhere": len(kept) - len(kept_messages),
        "replies": replies,
        "replies_elsewhere": len(reply_ids) - len(replies),
    }
    places = [place for place in search.get("found", []) if place["id"] not in kept]
    context |= _matches(member, places)
    return render_page(request, member, "receipt.html", context)


def _readable_messages(member: Membership, ids: Sequence[UUID]) -> list[Message]:
    """Return the messages that the member may read, oldest first."""
    sessions = sessions_for(member.user).filter(project=member.project)
    rows = Message.objects.filter(project=member.project, pk__in=ids, session__in=sessions)
    return list(rows.select_related("session").order_by("created_at", "pk"))


def _matches(member: Membership, places: Sequence[dict[str, str]]) -> dict[str, object]:
    """Return where the same text still occurs, limited to places that the member may read."""

    def ids(kind: str) -> list[UUID]:
        return [UUID(place["id"]) for place in places if place["where"] == kind]

    messages = _readable_messages(member, ids("message"))
    entries = list(entries_for(member).filter(pk__in=ids("entry")).newest_first())
    facts = list(facts_for(member).current().filter(pk__in=ids("fact")).newest_first())
    files: list[File] = []
    if pks := ids("file"):
        files = list(access.files_for(member.user, member.project).filter(pk__in=pks))
    return {
        "found": len(places),
        "found_messages": messages,
        "found_entries": entries,
        "found_facts": facts,
        "found_files": files,
        "found_elsewhere": len(places) - len(messages) - len(entries) - len(facts) - len(files),
    }
