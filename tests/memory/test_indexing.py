"""Chunks follow the record."""

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from chat.conversations import edits
from chat.conversations.generation import finalise
from chat.conversations.messages import ask, begin_reply, post_message
from chat.models import Message, Session, Visibility
from memory import tasks
from memory.models import Chunk, Corpus, IndexCursor, Vector
from memory.recall import chunking, embedders, indexing, session_chunks
from memory.recall.embedders import remote
from memory.recall.summaries import mark_changed
from projects.models import Project
from tests.memory.hash_embedder import HashEmbedder
from tests.memory.recall_helpers import say, talk

pytestmark = pytest.mark.django_db

CUTOVER = "The cutover is on the third of March."
BILLING = "The platform team owns billing from now on."
REPLICA = "The replica stays for another week, to be sure."


def chunks() -> list[tuple[int, int, str]]:
    rows = Chunk.objects.order_by("first_seq", "part")
    return list(rows.values_list("first_seq", "last_seq", "text"))


def test_a_message_becomes_a_chunk_with_its_vector(project, owner):
    session = talk(project, owner, CUTOVER)
    [chunk] = Chunk.objects.all()
    assert (chunk.text, chunk.speaker, chunk.author) == (CUTOVER, "olive", owner)
    assert chunk.source_id == f"{session.pk}:1-1"
    assert chunk.tokens > 10
    [vector] = Vector.objects.all()
    assert (vector.chunk, vector.embedder) == (chunk, "static-minilm-256")
    cursor = session.index_cursor
    assert (cursor.wanted, cursor.indexed_through) == (cursor.done, 1)


def test_a_turn_that_grows_is_updated_in_place(project, owner):
    session = talk(project, owner, CUTOVER)
    [before] = Chunk.objects.all()
    say(session, owner, BILLING)
    [after] = Chunk.objects.all()
    assert (after.pk, after.first_seq, after.last_seq) == (before.pk, 1, 2)
    assert after.text == f"{CUTOVER}\n{BILLING}"
    assert Vector.objects.count() == 1


def test_indexing_twice_writes_nothing(project, owner):
    session = talk(project, owner, CUTOVER)
    IndexCursor.objects.update(wanted=5, done=4, dirty_from=1)
    assert indexing.catch_up().chunks == 0
    assert session.index_cursor.indexed_through == 1


def test_the_broker_is_asked_once_after_each_transaction(
    project, owner, woken, django_capture_on_commit_callbacks
):
    session = Session.objects.create(project=project, creator=owner)
    with django_capture_on_commit_callbacks(execute=True):
        post_message(session, CUTOVER, author=owner)
        post_message(session, BILLING, author=owner)
    assert len(woken) == 1


def test_a_run_without_progress_waits_for_the_next_minute(project, monkeypatch, woken):
    def fail(*args: object) -> int:
        raise embedders.EmbedderError("The connection to the model failed.")

    monkeypatch.setattr("memory.recall.summaries.update_project", fail)
    mark_changed(Project.objects.filter(pk=project.pk))
    tasks.run_indexing()
    assert indexing.is_behind() and not woken


def test_a_broker_that_is_away_harms_nothing(
    project, owner, monkeypatch, caplog, django_capture_on_commit_callbacks
):
    def away(**options):
        raise OSError("nobody there")

    monkeypatch.setattr("memory.tasks.run_indexing.apply_async", away)
    monkeypatch.setattr("memory.wakeups._broker_retry_at", 0.0)
    session = Session.objects.create(project=project, creator=owner)
    with django_capture_on_commit_callbacks(execute=True):
        post_message(session, CUTOVER, author=owner)
    assert "wakeup_failed task=memory.tasks.run_indexing" in caplog.text
    assert indexing.is_behind()


def test_a_reply_is_indexed_once_it_is_complete(project, owner, settings):
    settings.CHAT_MODEL = "openai-chat:scripted"
    session = talk(project, owner, CUTOVER, at=timezone.now())
    question = post_message(session, "Who owns billing after that?", author=owner)
    reply = begin_reply(question)
    indexing.catch_up()
    assert [chunk[:2] for chunk in chunks()] == [(1, 2)]
    finalise(reply, BILLING, "complete", {})
    indexing.catch_up()
    assert chunks()[1] == (3, 3, BILLING)


def test_a_question_is_indexed_together_with_its_reply(project, owner, settings):
    settings.CHAT_MODEL = "openai-chat:scripted"
    session = Session.objects.create(project=project, creator=owner)
    for question, answer in ((CUTOVER, BILLING), (REPLICA, "It is read only, says olive.")):
        _, reply = ask(session, question, owner)
        assert not IndexCursor.objects.due().exists()
        finalise(reply, answer, "complete", {})
        indexing.catch_up()
        assert [chunk[2] for chunk in chunks()][-2:] == [question, answer]


def test_an_edit_is_out_of_recall_at_once_and_back_with_its_new_text(project, owner):
    session = talk(project, owner, CUTOVER)
    edits.edit(session.messages.get(seq=1), BILLING, owner)
    assert chunks() == []
    indexing.catch_up()
    assert chunks() == [(1, 1, BILLING)]


def test_a_deleted_message_leaves_the_rest_of_its_turn(project, owner):
    session = talk(project, owner, CUTOVER, BILLING, REPLICA)
    edits.delete(session.messages.get(seq=2))
    assert chunks() == []
    indexing.catch_up()
    assert chunks() == [(1, 3, f"{CUTOVER}\n{REPLICA}")]


def test_a_branch_that_was_left_is_not_recalled(project, owner, settings):
    settings.CHAT_MODEL = "openai-chat:scripted"
    session = talk(project, owner, CUTOVER)
    question, reply = edits.rerun(session.messages.get(seq=1), REPLICA, owner)
    finalise(reply, BILLING, "complete", {})
    indexing.catch_up()
    assert chunks() == [(question.seq, question.seq, REPLICA), (reply.seq, reply.seq, BILLING)]
    edits.choose(session.messages.get(seq=1))
    indexing.catch_up()
    assert chunks() == [(1, 1, CUTOVER)]


def test_a_chat_that_is_not_remembered_is_not_recalled(project, owner):
    talk(project, owner, CUTOVER, remembered=False)
    assert chunks() == []


def test_a_fork_is_not_recalled_twice(project, owner):
    session = talk(project, owner, CUTOVER)
    edits.fork(session.messages.get(seq=1), owner)
    indexing.catch_up()
    assert [chunk.source for chunk in Chunk.objects.all()] == [session.pk]


def test_a_deleted_session_takes_its_chunks_along(project, owner):
    session = talk(project, owner, CUTOVER)
    session.delete()
    assert not Chunk.objects.exists() and not Vector.objects.exists()


def test_a_failure_stays_due_and_says_why(project, owner, monkeypatch, caplog):
    def fail(*args):
        raise embedders.EmbedderError("The embedder is away.")

    with monkeypatch.context() as patched:
        patched.setattr(HashEmbedder, "embed_documents", fail)
        patched.setattr(embedders, "get", lambda: HashEmbedder())
        session = talk(project, owner, CUTOVER)
    cursor = session.index_cursor
    assert cursor.wanted > cursor.done
    assert (cursor.failures, cursor.last_error) == (1, "The embedder is away.")
    assert "memory_ingest_failed" in caplog.text
    IndexCursor.objects.update(next_try_at=None)
    indexing.catch_up()
    assert chunks() == [(1, 1, CUTOVER)]


def test_one_that_fails_does_not_keep_the_others(project, owner, monkeypatch):
    bad = Session.objects.create(project=project, creator=owner)
    good = Session.objects.create(project=project, creator=owner)
    for session in (bad, good):
        post_message(session, CUTOVER, author=owner)
    real = session_chunks.read_stretches

    def fail(cursors, renew):
        if any(cursor.pk == bad.pk for cursor in cursors):
            raise RuntimeError("broken")
        return real(cursors, renew)

    monkeypatch.setattr(session_chunks, "read_stretches", fail)
    done = indexing.catch_up()
    assert (done.sessions, done.failed) == (1, 1)
    assert [chunk.source for chunk in Chunk.objects.all()] == [good.pk]


def test_numbers_without_messages_are_skipped_at_once(project, owner, monkeypatch):
    session = talk(project, owner, CUTOVER)
    Session.objects.update(last_seq=400_000)
    session.refresh_from_db()
    say(session, owner, BILLING)
    Session.objects.update(last_seq=900_000)
    IndexCursor.objects.update(done=0, dirty_from=1)
    real, stretches = session_chunks.read_stretches, []

    def counted(*args):
        stretches.extend(real(*args))
        return stretches[-1:]

    monkeypatch.setattr(session_chunks, "read_stretches", counted)
    indexing.catch_up()
    assert len(stretches) < 8
    assert [text for _, _, text in chunks()] == [CUTOVER, BILLING]
    assert IndexCursor.objects.get().indexed_through == 900_000


def test_a_turn_that_changes_while_it_is_read_is_read_again(project, owner, monkeypatch):
    session = Session.objects.create(project=project, creator=owner)
    post_message(session, CUTOVER, author=owner)
    real, once = session_chunks.read_stretches, []

    def interrupted(*args):
        extents = real(*args)
        if not once:
            once.append(edits.edit(session.messages.get(seq=1), BILLING, owner))
        return extents

    monkeypatch.setattr(session_chunks, "read_stretches", interrupted)
    indexing.catch_up()
    assert chunks() == [(1, 1, BILLING)]


def test_a_worker_that_was_overtaken_writes_nothing(project, owner, monkeypatch):
    session = Session.objects.create(project=project, creator=owner)
    post_message(session, CUTOVER, author=owner)
    claim = indexing.claim_sessions(IndexCursor.objects.due())
    IndexCursor.objects.update(lease_holder=session.pk)
    indexing.index_claim(claim, embedders.get(), indexing.IndexingProgress())
    assert chunks() == []


def test_a_lease_is_renewed_while_megabytes_of_messages_are_cut(
    project, owner, monkeypatch, settings
):
    settings.MERGE_TURNS = False
    session = Session.objects.create(project=project, creator=owner)
    for text in (CUTOVER, BILLING, REPLICA):
        post_message(session, text, author=owner)
    half_a_lease = indexing.LEASE / 2
    clock, real = [0.0], chunking.chunk_messages

    def slow(*args):
        for turn in real(*args):
            clock[0] += half_a_lease.total_seconds()
            IndexCursor.objects.update(lease_until=F("lease_until") - half_a_lease)
            yield turn

    monkeypatch.setattr(indexing.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(chunking, "chunk_messages", slow)
    assert indexing.catch_up().sessions == 1
    assert len(chunks()) == 3


def test_a_session_longer_than_a_stretch_is_indexed_whole(project, owner, monkeypatch):
    texts = [f"Message number {number} of a long talk." for number in range(60)]
    session = talk(project, owner, *texts)
    clean = chunks()
    Chunk.objects.all().delete()
    IndexCursor.objects.update(done=0, dirty_from=1)
    monkeypatch.setattr(session_chunks, "STRETCH_MESSAGES", 25)
    indexing.catch_up()
    assert chunks() == clean
    assert session.index_cursor.indexed_through == 60


def test_so_many_messages_are_indexed_together(project, owner, monkeypatch):
    sessions = [talk(project, owner, CUTOVER, BILLING, REPLICA) for _ in range(3)]
    clean = chunks()
    IndexCursor.objects.update(wanted=F("wanted") + 1, dirty_from=1)
    for messages, claimed in ((2, 1), (3, 1), (6, 2), (9, 3)):
        monkeypatch.setattr(indexing, "BATCH_MESSAGES", messages)
        claim = indexing.claim_sessions(IndexCursor.objects.due())
        assert len(claim.ids) == claimed
        IndexCursor.objects.update(lease_holder=None, lease_until=None)
    monkeypatch.setattr(indexing, "BATCH_MESSAGES", 4)
    assert indexing.catch_up().sessions == len(sessions)
    assert chunks() == clean


def test_nothing_but_small_words_does_not_hold_indexing_up(project, owner, monkeypatch):
    monkeypatch.setattr(session_chunks, "STRETCH_MESSAGES", 10)
    talk(project, owner, CUTOVER, *["ok"] * 50, REPLICA)
    assert not indexing.is_behind()
    assert [text for *_, text in chunks()][-1].endswith(REPLICA)


def test_the_words_of_a_project_are_counted(project, owner):
    talk(project, owner, CUTOVER)
    talk(project, owner, CUTOVER, visibility=Visibility.PRIVATE)
    corpus = Corpus.objects.get(pk=project.pk)
    assert (corpus.chunks, corpus.changes) == (2, 0)
    assert set(corpus.counts) == {2}


def test_no_samples_of_texts_are_kept():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'memory_chunk'::regclass "
            "AND attstattarget = 0 ORDER BY attname"
        )
        assert [name for [name] in cursor.fetchall()] == ["pieces", "speaker", "terms", "text"]


def test_many_sessions_take_no_more_queries(project, owner, django_assert_max_num_queries):
    for number in range(20):
        session = Session.objects.create(project=project, creator=owner)
        post_message(session, f"{CUTOVER} {number}", author=owner)
    with django_assert_max_num_queries(34):
        indexing.catch_up()
    assert Message.objects.count() == Chunk.objects.count() == 20


def test_only_sessions_that_were_committed_count(project, owner):
    session = Session.objects.create(project=project, creator=owner)
    post_message(session, CUTOVER, author=owner)
    claim = indexing.claim_sessions(IndexCursor.objects.due())
    IndexCursor.objects.update(wanted=F("wanted") + 1)
    progress = indexing.IndexingProgress()
    indexing.index_claim(claim, embedders.get(), progress)
    assert (progress.sessions, progress.chunks) == (0, 0)
    assert indexing.catch_up().sessions == 1


def test_a_lease_outlasts_all_attempts_at_a_batch():
    attempts = [*remote.RETRY_WAITS_S, 0]
    longest = sum(attempts) + len(attempts) * remote.TIMEOUTS_S["document"]
    assert indexing.LEASE.total_seconds() > longest


def test_sessions_are_still_held_when_each_is_indexed_by_itself(project, owner, monkeypatch):
    for _ in range(2):
        session = Session.objects.create(project=project, creator=owner)
        post_message(session, CUTOVER, author=owner)
    real = session_chunks.read_stretches

    def fail(cursors, renew):
        if len(cursors) > 1:
            IndexCursor.objects.update(lease_until=F("lease_until") - 0.9 * indexing.LEASE)
            raise RuntimeError("broken")
        [left] = IndexCursor.objects.filter(pk=cursors[0].pk).values_list("lease_until", flat=True)
        assert left > timezone.now() + indexing.LEASE / 2
        return real(cursors, renew)

    monkeypatch.setattr(session_chunks, "read_stretches", fail)
    done = indexing.catch_up()
    assert (done.sessions, done.failed) == (2, 0)
