"""A project that has some of all that one can have, and pages for it.

Run by `manage.py shell` beside a server, whose pages a browser then looks at.
"""

import io
import json
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.sessions.backends.db import SessionStore
from django.db import transaction
from django.utils import timezone

from chat import attachments
from chat.conversations import notes
from chat.conversations.messages import draft, post_messages
from chat.conversations.sessions import create_session
from chat.models import (
    Import,
    Message,
    MessageRevision,
    ModelPrice,
    ModelProvider,
    Reaction,
    Role,
    SavedPrompt,
    Session,
)
from memory import facts
from memory.forgetting import service
from memory.forgetting.service import ForgetScope
from memory.models import (
    Activity,
    ActivityVerb,
    Block,
    Call,
    Cursor,
    Delivery,
    Entry,
    EntryStatus,
    Fact,
    File,
    FilePassage,
    FileRevision,
    IndexCursor,
    Ladder,
    ModerationReason,
    Webhook,
)
from memory.moderation import entry_operations
from projects.models import Membership, Project, Token
from projects.services import create_project
from tests.chat.pictures import picture
from tests.memory.daily_entries import START, remember

# So many rows where a page lists some: what stands on its first page.
ROWS = 30


def make() -> str:
    """A moderator of this server with a project: in JSON, what a browser needs to look at it."""
    user = get_user_model().objects.create_superuser(f"mallory{timezone.now():%f}")
    with transaction.atomic():
        provider = ModelProvider(name=user.username, kind="compatible", address="https://x.test/v1")
        provider.set_key("x")
        provider.catalogue = [{"name": "x", "context": None}]
        provider.save()
        ModelPrice.objects.create(model=user.username, input_price=1)
        project = create_project(user, name=user.username, share_raw_turns=True)
        chat = _chat(project, user)
        _people(project, user)
        _layers(project, user)
        _things(project, user)
        _in_every_state(project, user)
        deleted_session = create_session(project, user, title="x", visibility="project")
        post_messages(deleted_session, [draft("Said.", role=Role.USER, author=user)])
        service.forget(project, ForgetScope(session=deleted_session.pk), user)
    ids = {"slug": project.slug, "chat": str(chat.pk), "user": user.pk}
    return json.dumps(ids | {"cookie": _signed_in(user)} | _ids(project))


def _chat(project: Project, user: Any) -> Session:
    """A long chat whose messages have images, earlier texts and reactions."""
    chat = create_session(project, user, title="x", visibility="project")
    messages = [
        draft(f"Said {number}.", role=(Role.USER, Role.ASSISTANT)[number % 2], author_name="x")
        for number in range(2 * ROWS)
    ]
    posted = post_messages(chat, messages)
    visible = attachments.read_upload(io.BytesIO(picture()))
    for message in posted[-16:]:
        image = attachments.store_image(chat, user, "x", visible, "x")
        attachments.claim_uploads(message, [image.pk], user)
        Reaction.objects.create(project=project, message=message, user=user, emoji="x")
        MessageRevision.objects.create(
            project=project,
            message=message,
            version=1,
            text="x",
            edited_by=user,
            edited_at=timezone.now(),
        )
    failed = [message.pk for message in posted[-15:-1:2]]
    Message.objects.filter(pk__in=failed).update(status="failed", error="x")
    return chat


def _people(project: Project, user: Any) -> None:
    users = get_user_model().objects.bulk_create(
        get_user_model()(username=f"{user.username}-{number}", password="!")
        for number in range(ROWS)
    )
    Membership.objects.bulk_create(
        Membership(project=project, user=item, role="viewer") for item in users
    )


def _layers(project: Project, user: Any) -> None:
    """Entries of chats, and half of them below a day, a week and a month."""
    parent = None
    for granularity, key in (("month", "2026-01"), ("week", "2026-W02"), ("day", "2026-01-05")):
        parent = Entry.objects.create(
            project=project,
            granularity=granularity,
            period_key=key,
            zone=project.timezone,
            parent=parent,
            summary="- Settled.",
            tokens=5,
            message_count=1,
            first_source_at=START,
            last_source_at=START,
            state=EntryStatus.ABSORBED if parent else EntryStatus.LIVE,
            written_by="x",
            particulars=3,
            losses=[{"kind": "name", "text": "x"}],
        )
    for number in range(ROWS):
        inside: dict[str, Any] = (
            {"parent": parent, "state": EntryStatus.ABSORBED} if number % 2 else {}
        )
        remember(project, user, "- Said.", day=number // 2, note="x", **inside)


def _things(project: Project, user: Any) -> None:
    """What is given by hand, and what other programs and files brought."""
    member = Membership.objects.select_related("project", "user").get(project=project, user=user)
    for number in range(ROWS):
        notes.add_note(project, user, f"Note {number}")
        create_project(user, name=f"{user.username} {number}")
        Token.issue(user, name=f"{number}", project=project)
        Import.objects.create(project=project, user=user, name="x", state="done", errors=["x"] * 3)
        hook = Webhook.objects.create(project=project, url="https://a", events=[], created_by=user)
        Delivery.objects.create(project=project, webhook=hook, event="message.posted", error="x")
        statement = facts.Statement(f"thing {number}", "is", f"so {number}", timezone.now())
        facts.create_fact(member, statement)
        Call.objects.create(project=project, kind="summary", model="x", outcome="x")
        _file(project, user, number)
    SavedPrompt.objects.bulk_create(
        SavedPrompt(project=project, name=f"p{number}", text="x") for number in range(ROWS)
    )
    Block.objects.bulk_create(
        Block(project=project, name=f"b{number}", content="x", position=number, tokens=1)
        for number in range(ROWS)
    )


def _file(project: Project, user: Any, number: int) -> None:
    """A file with one passage; every third could not be read."""
    document = File.objects.create(project=project, name=f"f{number}", added_by=user)
    revision = FileRevision.objects.create(
        project=project,
        document=document,
        number=1,
        size=1,
        state="ready" if number % 3 else "failed",
        reason="x",
        title="x",
        warnings=["x"],
        passage_count=1,
        added_by=user,
    )
    FilePassage.objects.create(
        project=project, revision=revision, number=1, section=1, label="x", headings="x", text="x"
    )


def _in_every_state(project: Project, user: Any) -> None:
    """Of what can wait, fail or be hidden, some does."""
    rows = list(project.entries.filter(state=EntryStatus.LIVE, pinned=False).order_by("-pk")[:14])
    for entry in rows[8:]:
        entry_operations.edit(entry, "- Written by hand.", user, ModerationReason.WRONG)
    states = [EntryStatus.PROPOSED, EntryStatus.HIDDEN, EntryStatus.STALE, EntryStatus.FADED] * 2
    for entry, state in zip(rows[:8], states, strict=True):
        project.entries.filter(pk=entry.pk).update(state=state)
    for cursors in (Cursor, IndexCursor, Ladder):
        cursors.objects.filter(project=project).update(failures=3, last_error="x")
    Webhook.objects.filter(project=project).update(failures=3, last_error="x")
    fact_ids = Fact.objects.filter(project=project).order_by("-pk").values_list("pk", flat=True)[:5]
    Fact.objects.filter(pk__in=list(fact_ids)).update(state="proposed")


def _signed_in(user: Any) -> str:
    """The cookie of somebody who has signed in as `user`."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return str(session.session_key)


def _ids(project: Project) -> dict[str, list[str]]:
    """Of things that have a page of their own, a few of each kind."""
    entries = project.entries.order_by("-pk")
    kinds: dict[str, list[Any]] = {
        "entries": [
            entries.filter(granularity="day"),
            entries.filter(state=EntryStatus.PROPOSED),
            entries.filter(revision__gt=1),
        ],
        "facts": [Fact.objects.filter(project=project, earlier_of=None).order_by("-pk")],
        "files": [File.objects.filter(project=project).order_by("-pk")],
        "webhooks": [Webhook.objects.filter(project=project).order_by("-pk")],
        "messages": [Message.objects.filter(project=project, revisions__isnull=False)],
        "receipts": [Activity.objects.filter(project=project, verb=ActivityVerb.FORGOTTEN)],
    }
    return {
        kind: [str(pk) for rows in members for pk in rows.values_list("pk", flat=True)[:1]]
        for kind, members in kinds.items()
    }


def remove(user: int) -> None:
    """The projects, the people and all that was theirs."""
    projects = Project.objects.filter(memberships__user=user, memberships__role="owner")
    people = get_user_model().objects.filter(memberships__project__in=list(projects)).distinct()
    user_ids = [person.pk for person in people]
    for project in projects:
        project.delete()
    get_user_model().objects.filter(pk__in=user_ids).delete()
