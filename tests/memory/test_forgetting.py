"""Forgetting subtracts: the text, and everything that was made of it."""

import io
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from chat.conversations import edits, saved_prompts, sessions
from chat.conversations.generation import finalise
from chat.conversations.messages import ask, draft, post_messages
from chat.conversations.sessions import create_session
from chat.importers import import_file
from chat.models import Message, MessageRevision, Session
from memory import facts
from memory import recall as recalls
from memory.forgetting import service
from memory.forgetting.scope import DeletionSet, TombstoneScope
from memory.forgetting.service import ForgetScope, forget, preview
from memory.layers import cycle
from memory.layers.bank_cache import rendered_bank
from memory.layers.conversations import summarise
from memory.models import (
    Activity,
    ActivityVerb,
    Chunk,
    Entry,
    EntryRevision,
    EntryStatus,
    Nudge,
    Tombstone,
)
from memory.moderation import entry_operations
from memory.recall.indexing import catch_up
from projects.core.errors import InvalidInputError
from projects.core.models import new_id

pytestmark = pytest.mark.django_db

SECRET = "The vault opens with the number nine four seven two."


def later(minutes=60):
    return datetime.now(UTC) + timedelta(minutes=minutes)


@pytest.fixture
def session(project, owner):
    return create_session(project, owner, title="")


@pytest.fixture
def secret_conversation(session, owner):
    """A question, its reply, and something else."""
    question, reply = ask(session, SECRET, owner)
    finalise(reply, "Noted: nine four seven two.", "complete", {})
    [other] = post_messages(session, [draft("The cutover is on 3 March.", author=owner)])
    return question, Message.objects.get(pk=reply.pk), other


def everything(project) -> str:
    """Whatever the tables hold of people's words."""
    remaining = [
        *Message.objects.values_list("text", flat=True),
        *MessageRevision.objects.values_list("text", flat=True),
        *Session.objects.values_list("title", flat=True),
        *Entry.objects.values_list("summary", flat=True),
        *Entry.objects.values_list("note", flat=True),
        *EntryRevision.objects.values_list("summary", flat=True),
    ]
    return "\n".join(remaining)


def test_a_forgotten_message_takes_its_reply_its_revisions_and_the_title_along(
    secret_conversation, session, owner, project
):
    edits.edit(secret_conversation[0], f"{SECRET} Do not tell.", owner)
    receipt = forget(project, ForgetScope(message=secret_conversation[0].pk), owner)
    assert "nine four" not in everything(project)
    assert receipt.removed["messages"] == 2
    assert receipt.removed["revisions"] == 1
    assert receipt.removed["titles"] == 1
    session.refresh_from_db()
    assert session.title == "The cutover is on 3 March."


def test_its_place_stays_so_that_what_follows_still_follows_something(
    secret_conversation, session, project
):
    forget(project, ForgetScope(message=secret_conversation[0].pk))
    assert list(session.messages.values_list("seq", flat=True)) == [1, 2, 3]
    session.refresh_from_db()
    path = Message.objects.path_to(session, session.head_id, 10)
    assert [message.seq for message in path] == [1, 2, 3]


def test_a_title_chosen_by_hand_stays(secret_conversation, session, project):
    sessions.update_session(session, title="Ours")
    assert forget(project, ForgetScope(message=secret_conversation[0].pk)).removed["titles"] == 0
    session.refresh_from_db()
    assert session.title == "Ours"


def test_an_entry_without_known_lines_is_empty_at_once_and_written_from_other_sources(
    secret_conversation, session, project
):
    entry = summarise(session.pk, later())
    assert "nine four" in entry.summary
    Entry.objects.update(lines=[])
    receipt = forget(project, ForgetScope(message=secret_conversation[0].pk))
    assert (receipt.awaiting_rewrite, receipt.removed["entries"]) == (1, 0)
    assert receipt.removed["lines"] == 0
    assert "nine four" not in everything(project)
    assert rendered_bank(project).text == ""
    cycle.run(later())
    entry.refresh_from_db()
    assert (entry.state, entry.withheld) == (EntryStatus.LIVE, False)
    assert "3 March" in entry.summary
    assert "nine" not in entry.summary


def test_an_entry_made_only_of_it_goes(secret_conversation, session, project):
    summarise(session.pk, later())
    forget(project, ForgetScope(message=secret_conversation[2].pk))
    assert forget(project, ForgetScope(message=secret_conversation[0].pk)).removed["entries"] == 1
    assert not Entry.objects.exists()
    assert cycle.due(later()).sessions == []


def test_text_written_with_the_forgotten_message_is_rewritten(
    secret_conversation, session, owner, project, scripted
):
    scripted.say("- The vault opens with nine four seven two.")
    summarise(session.pk, later())
    post_messages(session, [draft("And the backup runs at 04:00.", author=owner)])
    scripted.say("- As noted, nine four seven two; the backup runs at 04:00.")
    summarise(session.pk, later(120))
    receipt = forget(project, ForgetScope(message=secret_conversation[0].pk))
    assert receipt.awaiting_rewrite == 2
    assert "nine four" not in everything(project)


@pytest.mark.django_db(transaction=True)
def test_a_summary_under_way_is_not_kept(secret_conversation, session, project, scripted):
    def forgotten_meanwhile(request):
        forget(project, ForgetScope(message=secret_conversation[0].pk))
        return "- The vault opens with nine four seven two."

    scripted.queue(forgotten_meanwhile)
    assert summarise(session.pk, later()) is None
    assert not Entry.objects.exists()
    assert cycle.due(later()).sessions == [session.pk]


@pytest.mark.django_db(transaction=True)
def test_a_summary_under_way_that_knew_it_is_not_kept(
    secret_conversation, session, owner, project, scripted
):
    scripted.say("- The vault opens with nine four seven two.")
    summarise(session.pk, later())
    post_messages(session, [draft("And the backup runs at 04:00.", author=owner)])

    def forgotten_meanwhile(request):
        forget(project, ForgetScope(message=secret_conversation[0].pk))
        return "- As noted, nine four seven two; the backup runs at 04:00."

    scripted.queue(forgotten_meanwhile)
    assert summarise(session.pk, later(120)) is None
    assert "nine four" not in everything(project)


def test_an_unfinished_reply_ends_without_more_text(session, owner, project):
    question, reply = ask(session, SECRET, owner)
    Message.objects.filter(pk=reply.pk).update(text="Noted: nine", status="streaming")
    forget(project, ForgetScope(message=question.pk))
    assert finalise(reply, "Noted: nine four seven two.", "complete", {}) is False
    assert "nine" not in everything(project)


def test_copies_in_forks_go_with_their_original_and_the_other_way_round(
    secret_conversation, session, owner, project
):
    fork = edits.fork(secret_conversation[2], owner)
    copy = fork.messages.get(text=SECRET)
    another = edits.fork(fork.messages.last(), owner)
    receipt = forget(project, ForgetScope(message=copy.pk))
    assert receipt.removed["messages"] == 6
    assert "nine four" not in everything(project)
    assert another.messages.count() == 3


def test_an_editor_forgets_a_copy_in_an_own_fork_and_not_the_original(
    secret_conversation, session, owner, editor, project
):
    fork = edits.fork(secret_conversation[2], editor)
    own = post_messages(session, [draft("Edgar was here.", author=editor)])[0]
    copies = [fork.messages.get(text=SECRET), edits.fork(own, editor).messages.get(text=own.text)]
    for copy in copies:
        forget(project, ForgetScope(message=copy.pk), editor)
    assert not fork.messages.filter(text=SECRET).exists()
    assert session.messages.filter(text=SECRET).exists()
    assert not session.messages.filter(text=own.text).exists()
    assert "nine four" in everything(project)


def test_an_editor_deletes_nothing_of_others_in_their_forks(session, owner, editor, project):
    asked, reply = ask(session, "Where is the key?", owner)
    finalise(reply, "Under the mat.", "complete", {})
    fork = edits.fork(Message.objects.get(pk=reply.pk), owner)
    forget(project, ForgetScope(message=asked.pk), editor)
    assert not session.messages.exclude(text="").exists()
    assert fork.messages.filter(text="Where is the key?").exists()
    assert fork.messages.filter(text="Under the mat.").exists()


def test_a_deleted_fork_takes_nothing_from_the_chat_it_was_made_from(
    secret_conversation, session, editor, project
):
    before = list(session.messages.values_list("text", flat=True))
    fork = edits.fork(secret_conversation[2], editor)
    sessions.delete_session(fork)
    Session.objects.filter(pk=fork.pk).update(deleted_at=timezone.now() - timedelta(days=1))
    sessions.purge_deleted()
    assert not Session.objects.filter(pk=fork.pk).exists()
    assert list(session.messages.values_list("text", flat=True)) == before
    restored = edits.fork(secret_conversation[2], editor)
    copies = frozenset(restored.messages.values_list("pk", flat=True))
    forget(project, ForgetScope(tombstones=TombstoneScope(messages=copies)))
    assert not restored.messages.exclude(text="").exists()
    assert list(session.messages.values_list("text", flat=True)) == before


def test_digests_above_lose_the_line_at_once(project, owner):
    project.bank_max_tokens = 150
    project.save()
    start = datetime(2025, 3, 3, 9, tzinfo=UTC)
    for day in range(8):
        for hour in (0, 3):
            talk = create_session(project, owner, title=f"Day {day} {hour}")
            at = start + timedelta(days=day, hours=hour)
            words = f"The team agreed that build {day}{hour} takes {day + 10} minutes and is owned."
            post_messages(talk, [draft(words, author=owner, created_at=at)])
            Session.objects.filter(pk=talk.pk).update(last_activity_at=at)
    cycle.run(start + timedelta(days=9))
    chat_session = Session.objects.get(title="Day 2 3")
    word = "build 23 takes"
    above = list(Entry.objects.filter(summary__contains=word).exclude(session=chat_session))
    assert above
    receipt = forget(project, ForgetScope(session=chat_session.pk))
    assert receipt.removed["sessions"] == receipt.removed["entries"] == 1
    assert (receipt.awaiting_rewrite, receipt.removed["lines"]) == (0, len(above))
    assert word not in everything(project)
    cycle.run(start + timedelta(days=9))
    assert word not in everything(project)
    assert not Entry.objects.filter(state=EntryStatus.STALE).exists()
    assert "build 20 takes" in everything(project)


def test_an_entry_goes_and_its_messages_stay_but_are_remembered_no_more(
    secret_conversation, session, project
):
    entry = summarise(session.pk, later())
    receipt = forget(project, ForgetScope(entry=entry.pk))
    assert receipt.removed["entries"] == 1
    assert receipt.removed["messages"] == 0
    assert session.messages.filter(text=SECRET, remembered=False).exists()
    assert not Entry.objects.exists()
    assert not cycle.due(later()).sessions
    cycle.run(later())
    assert not Entry.objects.exists()


def test_an_entry_goes_with_its_sources_where_that_is_wanted(secret_conversation, session, project):
    entry = summarise(session.pk, later())
    assert forget(project, ForgetScope(entry=entry.pk, sources=True)).removed["messages"] == 3
    assert "nine four" not in everything(project)


def test_everything_by_a_user_goes_with_the_replies_to_it(
    secret_conversation, session, owner, editor, project
):
    post_messages(session, [draft("The editor speaks of rollbacks.", author=editor)])
    receipt = forget(project, ForgetScope(user=owner.pk))
    assert receipt.removed["messages"] == 3
    assert list(session.messages.exclude(text="").values_list("text", flat=True)) == [
        "The editor speaks of rollbacks."
    ]
    assert not Message.objects.filter(author=owner).exists()


def test_everything_by_a_user_includes_what_they_recorded_in_other_names(
    session, owner, editor, project, api
):
    post_messages(session, [draft("Stays.", author=owner)])
    url = f"/api/v1/sessions/{session.pk}/messages/"
    for body in ({"author": "Alice"}, {"role": "assistant"}, {"role": "assistant", "author": "X"}):
        body |= {"content": "Pay the invoice of mallory.", "reply": False}
        assert api(editor).post(url, body, format="json").status_code == 201
    assert forget(project, ForgetScope(user=editor.pk)).removed["messages"] == 3
    assert set(session.messages.values_list("text", flat=True)) == {"Stays.", ""}


def test_a_session_in_which_nothing_is_left_goes_whole(
    secret_conversation, session, owner, project
):
    assert forget(project, ForgetScope(user=owner.pk)).removed["sessions"] == 1
    assert not Session.objects.exists()


def test_everything_before_a_moment_goes(session, owner, project):
    old = datetime(2025, 1, 1, tzinfo=UTC)
    post_messages(session, [draft(SECRET, author=owner, created_at=old), draft("Stays.")])
    forget(project, ForgetScope(before=datetime(2025, 2, 1, tzinfo=UTC)))
    assert list(session.messages.values_list("text", flat=True)) == ["", "Stays."]


def test_conditions_are_and_ed(secret_conversation, session, owner, editor, project):
    other = create_session(project, editor)
    post_messages(other, [draft("Elsewhere.", author=owner), draft("By Edgar.", author=editor)])
    forget(project, ForgetScope(session=other.pk, user=owner.pk))
    assert list(other.messages.values_list("text", flat=True)) == ["", "By Edgar."]
    assert session.messages.filter(text=SECRET).exists()


def test_words_of_a_user_in_one_chat_take_nothing_from_other_chats(session, owner, project):
    other = create_session(project, owner)
    [here, there] = (
        post_messages(chat, [draft("Words.", author=owner)])[0] for chat in (session, other)
    )
    edits.react(there, owner, "👍", wanted=True)
    forget(project, ForgetScope(session=session.pk, user=owner.pk))
    assert there.reactions.count() == 1
    forget(project, ForgetScope(user=owner.pk))
    assert there.reactions.count() == 0


def test_the_past_of_a_user_leaves_what_they_wrote_later(session, owner, editor, project):
    [message] = post_messages(session, [draft("The cutover is on 3 March.", author=owner)])
    summarise(session.pk, later())
    entry_operations.edit(Entry.objects.get(), "The cutover is in spring.", editor)
    edits.react(message, editor, "👍", wanted=True)
    saved_prompts.put(project, editor, "report", "Sum up the week.", editor)
    past = ForgetScope(user=editor.pk, before=timezone.now() - timedelta(days=1))
    receipt = forget(project, past)
    assert not any(receipt.removed.values())
    assert "in spring" in rendered_bank(project).text
    present = ForgetScope(user=editor.pk, before=timezone.now())
    assert {"reactions": 1, "saved_prompts": 1}.items() <= forget(project, present).removed.items()
    assert rendered_bank(project).text == ""


def test_to_forget_nothing_is_refused(project):
    with pytest.raises(InvalidInputError):
        forget(project, ForgetScope())


def test_nothing_of_another_project_is_forgotten(secret_conversation, owner, project):
    from projects.services import create_project

    other = create_project(owner, name="Other")
    receipt = forget(other, ForgetScope(message=secret_conversation[0].pk))
    assert receipt.removed["messages"] == 0
    assert Message.objects.filter(text=SECRET).exists()


def test_a_preview_says_what_would_go_and_changes_nothing(secret_conversation, session, project):
    summarise(session.pk, later())
    before = everything(project)
    receipt = preview(project, ForgetScope(message=secret_conversation[0].pk))
    assert (receipt.removed["messages"], receipt.removed["lines"]) == (2, 1)
    assert everything(project) == before
    assert not Tombstone.objects.exists()
    assert not Activity.objects.filter(verb=ActivityVerb.FORGOTTEN).exists()


def test_the_receipt_is_on_the_record_and_holds_no_text(secret_conversation, owner, project):
    receipt = forget(project, ForgetScope(message=secret_conversation[0].pk), owner, "private")
    act = Activity.objects.get(verb=ActivityVerb.FORGOTTEN)
    assert (act.pk, act.by, act.reason, act.count) == (receipt.id, owner, "private", 2)
    assert act.receipt["search"]["phrases"] >= 1
    assert act.receipt["search"]["found"] == []
    assert "vault" not in str(act.receipt)


def test_the_receipt_names_where_the_same_words_still_stand(secret_conversation, owner, project):
    elsewhere = create_session(project, owner)
    [repeated_message] = post_messages(elsewhere, [draft(f"I repeat: {SECRET}", author=owner)])
    receipt = forget(project, ForgetScope(message=secret_conversation[0].pk))
    assert ("message", repeated_message.pk) in receipt.found


def test_the_receipt_lists_exposed_replies(secret_conversation, session, owner, project):
    entry = summarise(session.pk, later())
    elsewhere = create_session(project, owner)
    _, reply = ask(elsewhere, "What do we know?", owner)
    item = {"kind": "conversation", "id": str(entry.pk), "revision": 1, "tokens": 9}
    receipt = {"budget": 9, "sections": [{"name": "bank", "tokens": 9, "items": [item]}]}
    finalise(reply, "Something.", "complete", {"receipt": receipt})
    assert forget(project, ForgetScope(message=secret_conversation[0].pk)).saw_it == [reply.pk]


def test_a_later_import_of_the_same_file_brings_nothing_back(project, owner):
    line = '{"session": "a", "role": "user", "content": "%s", "created_at": "2025-01-0%dT09:00Z"}\n'
    file = (line % (SECRET, 1) + line % ("Something else.", 2)).encode()
    assert import_file(project, owner, "x.jsonl", io.BytesIO(file)).imported == 2
    forget(project, ForgetScope(message=Message.objects.get(text=SECRET).pk))
    repeated_message = import_file(project, owner, "x.jsonl", io.BytesIO(file))
    assert (repeated_message.imported, repeated_message.skipped) == (0, 2)
    forget(project, ForgetScope(session=Session.objects.get().pk))
    repeated_message = import_file(project, owner, "x.jsonl", io.BytesIO(file))
    assert (repeated_message.imported, repeated_message.skipped) == (0, 2)
    assert not Session.objects.exists()


def test_graves_are_in_the_file_outside_of_the_database_too(
    secret_conversation, project, settings, tmp_path
):
    settings.TOMBSTONES = tmp_path / "tombstones.jsonl"
    forget(project, ForgetScope(message=secret_conversation[0].pk))
    written = settings.TOMBSTONES.read_text()
    assert str(secret_conversation[0].pk) in written
    assert "vault" not in written
    assert django_settings.TOMBSTONES == settings.TOMBSTONES


def test_a_file_that_cannot_be_written_leaves_everything_as_it_was(
    secret_conversation, project, settings, tmp_path
):
    settings.TOMBSTONES = tmp_path
    with pytest.raises(OSError):
        forget(project, ForgetScope(message=secret_conversation[0].pk))
    assert Message.objects.filter(text=SECRET).exists()


def test_to_forget_twice_changes_nothing(secret_conversation, project):
    forget(project, ForgetScope(message=secret_conversation[0].pk))
    receipt = forget(project, ForgetScope(message=secret_conversation[0].pk))
    assert set(receipt.removed.values()) <= {0}


def test_a_digest_that_somebody_wrote_in_goes_to_review(
    secret_conversation, session, project, owner
):

    entry = summarise(session.pk, later())
    digest = Entry.objects.create(
        project=project,
        granularity="day",
        period_key=entry.period_key,
        zone="UTC",
        summary="- A digest.",
        tokens=5,
        message_count=3,
        first_source_at=entry.first_source_at,
        last_source_at=entry.last_source_at,
        written_by="extractive",
    )
    Entry.objects.filter(pk=entry.pk).update(parent=digest, state=EntryStatus.ABSORBED)
    entry_operations.edit(digest, "- The vault: nine four seven two.", owner)
    forget(project, ForgetScope(message=secret_conversation[0].pk))
    assert "nine four" not in everything(project)
    cycle.run(later())
    digest.refresh_from_db()
    assert (digest.state, digest.waits_because) == (EntryStatus.PROPOSED, "sources")


def test_forgetting_a_little_in_a_large_project_takes_few_queries(
    secret_conversation, project, django_assert_max_num_queries
):
    with django_assert_max_num_queries(75):
        forget(project, ForgetScope(message=secret_conversation[0].pk))


def test_it_has_the_layers_looked_through(secret_conversation, project):
    Nudge.objects.all().delete()
    service.forget(project, ForgetScope(message=secret_conversation[0].pk))
    assert Nudge.objects.filter(project=project).exists()


def test_recall_quotes_nothing_of_it_and_finds_what_is_left(
    secret_conversation, session, owner, project
):
    catch_up()
    scope = recalls.RecallScope(project, owner)
    assert "nine four" in quoted(scope)
    receipt = forget(project, ForgetScope(message=secret_conversation[0].pk))
    assert receipt.removed["chunks"] >= 1
    assert "nine four" not in quoted(scope)
    catch_up()
    assert "nine four" not in quoted(scope)
    assert "3 March" in quoted(scope)
    forget(project, ForgetScope(session=session.pk))
    assert not Chunk.objects.exists()


def test_recall_quotes_nothing_of_a_deleted_session_until_it_is_restored(
    secret_conversation, session, owner, project
):
    catch_up()
    scope = recalls.RecallScope(project, owner)
    sessions.delete_session(session)
    assert quoted(scope) == ""
    sessions.restore_session(session.pk)
    assert "nine four" in quoted(scope)


def quoted(scope) -> str:
    """What recall finds on everything that these tests speak of."""
    results = recalls.recall(scope, "the vault opens with nine four seven two; cutover on 3 March")
    return "\n".join(result.text for result in results)


def test_samples_are_taken_from_the_whole_range():
    ids = [new_id() for _ in range(2 * service.MAX_PHRASES - 1)]
    sample = service.sample(ids)
    assert len(sample) == service.MAX_PHRASES and sample[-1] == max(ids)


def test_phrases_of_a_fact_are_searched_beside_those_of_many_messages(project, owner):
    member = project.memberships.select_related("user", "project").get(user=owner)
    fact, _ = facts.create_fact(
        member,
        facts.Statement("The garden gate", "is opened by", "the old gardener", timezone.now()),
    )
    session = Session.objects.create(project=project, creator=owner)
    texts = [f"Sentence {number} of a long talk about ferries" for number in range(30)]
    messages = post_messages(session, [draft(text, author=owner) for text in texts])
    deletions = DeletionSet(messages={it.pk for it in messages}, facts={fact.pk})
    phrases = service.deleted_phrases(project, deletions)
    assert len(phrases) <= service.MAX_PHRASES
    assert any("gate" in phrase for phrase in phrases)


def test_words_without_end_are_cut_in_phrases():
    """PostgreSQL would parse them in quadratic time, once for each store."""
    phrase = service.longest_phrase(" ".join(["a_" * 1_000] * 9))
    assert phrase and len(phrase) < 800
