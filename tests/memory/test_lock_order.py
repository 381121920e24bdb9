"""Transactions lock rows in one order, so that no two of them wait for each other.

Each test locks a row that the code must lock first, and shows that the code, while it waits for
this row, has not locked a later one.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest
from django.contrib import admin
from django.db import OperationalError, connection, connections, transaction
from django.db.models import Model
from django.utils import timezone

from chat.conversations.messages import draft, post_messages
from chat.conversations.sessions import create_session, update_session
from chat.models import Message
from chat.signals import message_changed, reply_stored
from memory import leases
from memory.facts import Statement, create_fact, extraction
from memory.facts.extraction import ExtractedFact
from memory.forgetting import service
from memory.forgetting.service import ForgetScope, forget
from memory.layers.digests import LayerUpdate
from memory.layers.ladder import RollUp
from memory.layers.periods import Granularity
from memory.models import (
    Chunk,
    Entry,
    EntryStatus,
    Fact,
    File,
    FilePassage,
    FileRevision,
    IndexCursor,
    Ladder,
)
from memory.moderation import entry_operations
from projects.admin import AccountAdmin
from projects.core.models import new_id
from tests.memory.daily_entries import NOW, START, remember
from tests.memory.file_helpers import add_read, add_text
from tests.memory.recall_helpers import say

pytestmark = pytest.mark.django_db(transaction=True)

DEADLOCK = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'deadlock_detected'; END $$"


def is_free(row: Model) -> bool:
    try:
        with transaction.atomic():
            type(row).objects.select_for_update(nowait=True, of=("self",)).get(pk=row.pk)
    except OperationalError:
        return False
    return True


def wait_until_blocked(running: Future) -> None:
    """Wait until another connection, that of `running`, waits for a lock of this one."""
    deadline = time.monotonic() + 30
    blocked = "SELECT 1 FROM pg_locks WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    with connection.cursor() as cursor:
        while not cursor.execute(blocked).fetchone():
            assert not running.done(), running.exception() or "It did not lock the row."
            assert time.monotonic() < deadline
            time.sleep(0.01)


def locks_first(first: Model, later: Model, work: Callable[[], object]) -> bool:
    """Return whether `work` locks `first` before `later`. It is carried out completely."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            type(first).objects.select_for_update(of=("self",)).get(pk=first.pk)
            running = pool.submit(run)
            wait_until_blocked(running)
            was_free = is_free(later)
        running.result(timeout=30)
    return was_free


def digest_of(granularity: Granularity, key: str, *children: Entry, **fields) -> Entry:
    """A digest of `children`, or of the period of `fields["project"]` without children."""
    project = fields.pop("project", None) or children[0].project
    digest = Entry.objects.create(
        project=project,
        granularity=granularity,
        period_key=key,
        zone=project.timezone,
        summary="- The cutover.",
        tokens=5,
        message_count=1,
        first_source_at=START,
        last_source_at=START,
        written_by="someone",
        **fields,
    )
    for child in children:
        child.parent, child.state = digest, EntryStatus.ABSORBED
        child.save()
    return digest


@pytest.fixture
def update(project) -> LayerUpdate:
    Ladder.objects.get_or_create(project=project)
    lease = leases.claim(Ladder.objects.ready(), project.pk)
    assert lease is not None
    return LayerUpdate(lease, project, NOW + timedelta(days=30))


def test_forgetting_locks_chats_before_files(project, owner):
    session = create_session(project, owner)
    post_messages(session, [draft("The cutover is on 3 March.", author=owner)])
    document = add_text(project, owner)
    scope = ForgetScope(user=owner.pk)
    assert locks_first(session, document, lambda: forget(project, scope))
    assert not File.objects.exists()


def test_forgetting_a_file_waits_for_the_worker_that_reads_it(project, owner):
    document = add_text(project, owner)
    revision = document.revisions.get()

    def act() -> None:
        try:
            forget(project, ForgetScope(file=document.pk))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            FileRevision.objects.select_for_update().get(pk=revision.pk)
            running = pool.submit(act)
            wait_until_blocked(running)
            FilePassage.objects.create(
                project=project, revision=revision, number=1, section=1, text="One."
            )
        running.result(timeout=30)
    assert not File.objects.exists()
    assert not FilePassage.objects.exists()


def test_adding_an_earlier_text_again_locks_the_file_before_its_versions(project, owner):
    document = add_text(project, owner, text="One.")
    first = document.revisions.get()
    add_text(project, owner, text="Two.")
    assert locks_first(document, first, lambda: add_text(project, owner, text="One."))
    assert document.revisions.count() == 3


def test_extracted_facts_are_locked_in_the_order_of_their_ids(project, owner):
    entry = remember(project, owner, "- The platform team owns billing.")
    message = entry.session.messages.get()
    facts = [
        ExtractedFact(Statement(subject, "is owned by", "platform", START), message)
        for subject in ("billing", "invoices")
    ]

    @transaction.atomic
    def record() -> None:
        extraction.record_extracted(entry, facts, [message], NOW, is_whole=True)

    record()
    first, second = Fact.objects.order_by("pk")
    facts.reverse()
    assert locks_first(first, second, record)
    assert Fact.objects.count() == 2


def test_an_entry_with_the_expected_version_is_forgotten_after_its_chat_is_locked(
    project, owner, api
):
    entry = remember(project, owner, "- The cutover is on 3 March.")
    client = api(owner)
    url = f"/api/v1/projects/{project.slug}/memory/entries/{entry.pk}/"
    version = client.get(url).headers["ETag"]
    answers = []

    def delete() -> None:
        answers.append(client.delete(url, headers={"If-Match": version}))

    assert locks_first(entry.session, entry, delete)
    assert [answer.status_code for answer in answers] == [200]
    assert not Entry.objects.filter(pk=entry.pk).exists()


def test_an_entry_is_changed_by_the_api_after_its_project_is_locked(project, owner, api):
    entry = remember(project, owner, "- The cutover is on 3 March.")
    url = f"/api/v1/projects/{project.slug}/memory/entries/{entry.pk}/"
    client = api(owner)

    def change() -> None:
        answer = client.patch(url, {"summary": "It is on 4 March.", "pinned": True}, format="json")
        assert answer.status_code == 200, answer.json()

    assert locks_first(project, entry, change)


def test_files_of_a_prompt_are_locked_in_the_order_of_their_ids(project, owner, scripted):
    first, second = sorted(
        (add_read(project, owner), add_read(project, owner, "b.md", "Two.")), key=lambda it: it.pk
    )
    File.objects.filter(pk=first.pk).update(uses=0)
    session = create_session(project, owner)
    [message] = post_messages(session, [draft("Read them.", author=owner)])
    passages = FilePassage.objects.filter(revision__in=FileRevision.objects.all())
    items = [{"kind": "file", "id": str(pk)} for pk in passages.values_list("pk", flat=True)]
    message.receipt = {"sections": [{"items": items}]}

    def finish() -> None:
        with transaction.atomic():
            reply_stored.send(sender=Message, session=session, message=message)

    assert locks_first(first, second, finish)
    assert set(File.objects.values_list("uses", flat=True)) == {1}


def test_a_digest_locks_children_of_the_finest_layer_first(project, owner, update):
    day = digest_of(Granularity.DAY, "2026-01-05", remember(project, owner, "- One."))
    talk = remember(project, owner, "- Two.", day=1)
    assert day.pk < talk.pk
    roll_up = RollUp(Granularity.WEEK, "2026-W02", None, (day.pk, talk.pk))
    assert locks_first(talk, day, lambda: update.write(roll_up))
    week = Entry.objects.get(granularity="week")
    assert set(week.children.all()) == {day, talk}


def test_approved_digests_absorb_children_of_the_finest_layer_first(project, owner, update):
    day = digest_of(Granularity.DAY, "2026-01-05", remember(project, owner, "- One."))
    talk = remember(project, owner, "- Two.", day=1)
    digest_of(Granularity.WEEK, "2026-W02", day, talk)
    Entry.objects.filter(pk__in=[day.pk, talk.pk]).update(state=EntryStatus.LIVE)
    assert locks_first(talk, day, update.absorb)
    states = Entry.objects.filter(pk__in=[day.pk, talk.pk]).values_list("state", flat=True)
    assert set(states) == {EntryStatus.ABSORBED}


def test_an_empty_digest_is_locked_before_the_digest_above_it(project, owner, update):
    talk = remember(project, owner, "- One.")
    day = digest_of(Granularity.DAY, "2026-01-05", project=project)
    week = digest_of(Granularity.WEEK, "2026-W02", day, talk)
    Entry.objects.filter(pk=day.pk).update(state=EntryStatus.STALE)
    assert locks_first(day, week, update.dissolve)
    assert not Entry.objects.filter(pk=day.pk).exists()
    week.refresh_from_db()
    assert (week.withheld, week.summary) == (True, "")


def test_approval_does_not_wait_for_a_child(project, owner, update):
    talk = remember(project, owner, "- One.")
    digest = digest_of(Granularity.DAY, "2026-01-05", talk)
    Entry.objects.filter(pk=digest.pk).update(state=EntryStatus.PROPOSED)
    Entry.objects.filter(pk=talk.pk).update(state=EntryStatus.LIVE)

    def approve() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = 200")
                entry_operations.set_hidden(digest, False, owner)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        Entry.objects.select_for_update().get(pk=talk.pk)
        pool.submit(approve).result(timeout=30)
    digest.refresh_from_db()
    assert digest.state == EntryStatus.LIVE
    assert update.absorb()
    talk.refresh_from_db()
    assert talk.state == EntryStatus.ABSORBED


@pytest.fixture
def two_parts(project, owner) -> tuple[Entry, Entry]:
    """Two entries of one chat, of its messages 1 and 2."""
    first = remember(project, owner, "- One.")
    assert first.session is not None
    post_messages(first.session, [draft("What was said next.", created_at=START)])
    second = Entry.objects.get(pk=first.pk)
    second.pk, second.first_seq, second.last_seq = new_id(), 2, 2
    second.save(force_insert=True)
    return first, second


def test_changed_messages_lock_all_their_entries_before_a_digest(project, owner, two_parts):
    first, second = two_parts
    digest = digest_of(Granularity.DAY, "2026-01-05", first)
    session = first.session
    messages = list(session.messages.order_by("seq"))
    messages[0].deleted_at = timezone.now()

    def change() -> None:
        with transaction.atomic():
            message_changed.send(sender=Message, session=session, messages=messages)

    assert locks_first(second, digest, change)


def test_a_chat_that_becomes_private_locks_its_entries_in_the_order_of_their_ids(
    project, owner, two_parts
):
    first, second = two_parts
    Entry.objects.filter(pk=first.pk).update(written_by="extractive")
    Entry.objects.filter(pk=second.pk).update(losses=[{"kind": "name", "text": "Ana"}])
    private = partial(update_session, first.session, visibility="private")
    assert locks_first(first, second, private)


def test_a_new_username_locks_the_entries_of_the_user_before_the_facts(project, owner, two_parts):
    entry, _second = two_parts
    Entry.objects.filter(pk=entry.pk).update(written_by=owner.username)
    statement = Statement("The vault", "is in", "Bern", START)
    fact, _is_new = create_fact(project.memberships.get(user=owner), statement)
    owner.username = "olivia"
    # As in the admin, which saves in a transaction.
    assert locks_first(entry, fact, transaction.atomic(owner.save))
    assert {Entry.objects.get(pk=entry.pk).written_by, Fact.objects.get().written_by} == {"olivia"}


@pytest.mark.parametrize("later", [IndexCursor, Chunk, Entry])
def test_a_deleted_user_locks_chats_then_the_progress_of_indexing_then_chunks_and_entries(
    project, owner, editor, later
):
    entry = remember(project, owner, "- The cutover is on 3 March.")
    Entry.objects.filter(pk=entry.pk).update(written_by=editor.username)
    session = create_session(project, owner)
    say(session, editor, "The cutover is on the third of March.")
    cursor = IndexCursor.objects.get(session=session)
    rows = {IndexCursor: cursor, Chunk: Chunk.objects.get(session=session), Entry: entry}
    first = session if later is IndexCursor else cursor
    assert locks_first(first, rows[later], editor.delete)
    cursor.refresh_from_db()
    assert cursor.wanted > cursor.done


def test_a_deleted_user_locks_own_chats_before_entries(project, owner, editor):
    entry = remember(project, owner, "- The cutover is on 3 March.")
    Entry.objects.filter(pk=entry.pk).update(written_by=editor.username)
    assert locks_first(create_session(project, editor), entry, editor.delete)


def test_the_admin_deletes_one_user_after_the_other(project, owner, editor):
    entry = remember(project, owner, "- The cutover is on 3 March.")
    Entry.objects.filter(pk=entry.pk).update(written_by=owner.username)
    session = create_session(project, editor)
    accounts, users = AccountAdmin(type(owner), admin.site), type(owner).objects.order_by("pk")
    both = users.filter(pk__in=[owner.pk, editor.pk])
    assert owner.pk < editor.pk
    assert locks_first(session, entry, lambda: accounts.delete_queryset(None, both))
    assert not both.all().exists()


@pytest.fixture
def deadlocks(monkeypatch) -> list[int]:
    """The search for deletions fails with a deadlock as often as the number in the list."""
    remaining, find = [1], service.find_deletions

    def find_or_fail(*args):
        if remaining[0]:
            remaining[0] -= 1
            with connection.cursor() as cursor:
                cursor.execute(DEADLOCK)
        return find(*args)

    monkeypatch.setattr(service, "find_deletions", find_or_fail)
    return remaining


@pytest.mark.parametrize("act", [service.forget, service.preview])
def test_a_forget_request_is_repeated_once_after_a_deadlock(project, owner, deadlocks, act):
    session = create_session(project, owner)
    post_messages(session, [draft("The cutover is on 3 March.", author=owner)])
    receipt = act(project, ForgetScope(session=session.pk))
    assert receipt.removed["messages"] == 1
    assert Message.objects.exists() == (act == service.preview)
    deadlocks[0] = 2
    with pytest.raises(OperationalError):
        act(project, ForgetScope(session=session.pk))
