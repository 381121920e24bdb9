"""A database that is older than a forgetting forgets once more what the tombstones name."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.core.files.base import ContentFile
from django.db import transaction
from django.db.models import Model

from chat.conversations import edits, sessions
from chat.conversations.generation import finalise
from chat.conversations.messages import ask, draft, post_messages
from chat.models import Attachment, FileRemoval, Message, Reaction, Session
from memory import blocks, facts
from memory.facts import Statement
from memory.forgetting import tombstones
from memory.forgetting.replay import replay
from memory.forgetting.service import ForgetScope, forget
from memory.layers import cycle
from memory.layers.conversations import summarise
from memory.models import Entry, EntryState, Fact, RenderedBank, Tombstone, TombstoneKind
from memory.moderation import entry_operations
from memory.recall.indexing import catch_up
from projects.models import Membership, Project
from tests.memory.text_columns import text_columns

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 10, tzinfo=UTC)
OWNS = "The platform team owns billing."


@pytest.fixture(autouse=True)
def file(settings, tmp_path):
    settings.TOMBSTONES = tmp_path / "tombstones.jsonl"
    settings.MEDIA_ROOT = tmp_path / "files"
    return settings.TOMBSTONES


@pytest.fixture
def talk(project, owner, editor, scripted):
    """Something of each kind that can be forgotten: said, summarised, held, written down."""
    chat_session = sessions.create_session(project, owner, title="")
    [question] = post_messages(chat_session, [draft(OWNS, author=owner, created_at=AT)])
    _, reply = ask(chat_session, "Where are the keys?", editor)
    finalise(reply, "In the drawer.", "complete", {})
    edits.edit(question, OWNS + " Or so they say.", owner)
    Reaction.objects.create(project=project, message=question, user=editor, emoji="🎉")
    edits.fork(Message.objects.get(pk=reply.pk), editor)
    other = sessions.create_session(project, editor, title="")
    post_messages(other, [draft("The cutover is in March.", author=editor, created_at=AT)])
    Session.objects.update(last_activity_at=AT)
    extracted_fact = {"subject": "billing", "predicate": "is owned by", "object": "platform team"}
    extracted_fact |= {"line": 1, "confidence": 0.9, "since": None, "personal": False}
    scripted.default = lambda request: json.dumps(
        {"summary": ["Who owns it."], "facts": [extracted_fact]}
    )
    for item in (chat_session, other):
        summarise(item.pk, datetime.now(UTC) + timedelta(hours=1))
    for user in (owner, editor):
        member = Membership.objects.select_related("project", "user").get(user=user)
        facts.create_fact(member, Statement(f"{user}'s door", "is", "green and locked", AT))
        blocks.put(project, user, "style", f"Short, says {user}.", user)
    unsent = Attachment(project=project, session=other, uploaded_by=editor, name="plan.png")
    unsent.width = unsent.height = unsent.size = 1
    unsent.file.save("plan.png", ContentFile(b"a picture"))
    catch_up()
    return chat_session


# What a trigger notes has numbers, which no rollback gives back; what a file's removal notes is
# noted anew.
KEYS: dict[type[Model], str] = {EntryState: "entry", FileRemoval: "project_id"}


def texts() -> dict[str, list]:
    """Every column that may hold somebody's words, with the ids of its rows."""
    rows_by_table = {}
    for model, columns in text_columns().items():
        if model is Tombstone or model._meta.label in ("memory.Activity", "memory.Call"):
            continue
        key = KEYS.get(model, "pk")
        rows = model._default_manager.order_by("pk").values_list(key, *sorted(columns))
        rows_by_table[model._meta.label] = list(rows)
    rows_by_table["remembered"] = list(
        Message.objects.order_by("pk").values_list("remembered", flat=True)
    )
    rows_by_table["withheld"] = list(Entry.objects.order_by("pk").values_list("state", "withheld"))
    return rows_by_table


WISHES: dict[str, Callable[..., ForgetScope]] = {
    "a message": lambda talk, user: ForgetScope(message=talk.messages.get(seq=1).pk),
    "a reply": lambda talk, user: ForgetScope(message=talk.messages.get(text="In the drawer.").pk),
    "a session": lambda talk, user: ForgetScope(session=talk.pk),
    "an entry": lambda talk, user: ForgetScope(entry=talk.entries.get().pk),
    "an entry with its sources": lambda talk, user: ForgetScope(
        entry=talk.entries.get().pk, sources=True
    ),
    "a fact": lambda talk, user: ForgetScope(fact=Fact.objects.get(subject="billing").pk),
    "a user's words": lambda talk, user: ForgetScope(user=user.pk),
    "a user's past": lambda talk, user: ForgetScope(user=user.pk, before=AT + timedelta(days=1)),
    "a past": lambda talk, user: ForgetScope(before=datetime.now(UTC) + timedelta(hours=1)),
}


@pytest.mark.parametrize("wish", WISHES)
def test_replayed_it_is_as_if_it_had_been_forgotten_here(wish, talk, project, editor, file):
    with transaction.atomic():
        forget(project, WISHES[wish](talk, editor))
        forgotten = texts()
        transaction.set_rollback(True)
    assert texts() != forgotten

    assert replay(tombstones.read_file(file))
    assert texts() == forgotten
    stones = set(Tombstone.objects.values_list("kind", "subject"))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert stones == {(line["kind"], line["subject"]) for line in lines}
    assert not replay(tombstones.read_file(file))
    assert texts() == forgotten


def test_a_project_that_was_deleted_is_deleted_again(talk, project, file):
    with transaction.atomic():
        project.delete()
        transaction.set_rollback(True)
    assert replay(tombstones.read_file(file)) == {TombstoneKind.PROJECT: 1}
    assert not Project.objects.exists()


def test_an_unknown_object_keeps_a_tombstone_and_does_no_harm(talk, project, file):
    # A replay empties the rendered bank. It creates the row if there is none.
    RenderedBank.objects.create(project=project)
    before = texts()
    strange = ("message", "unkept", "session", "entry", "block", "record", "source", "fact")
    lines = [
        {"at": AT.isoformat(), "project": str(project.pk), "kind": kind, "subject": str(talk.pk)}
        for kind in strange
        if kind != "session"
    ]
    elsewhere = lines[0] | {"project": str(talk.pk)}
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, elsewhere]))
    assert replay(tombstones.read_file(file)).total() == 7
    assert texts() == before
    assert Tombstone.objects.count() == 7


def test_a_forgotten_fact_stays_away_after_a_replay(talk, project, file, scripted):
    with transaction.atomic():
        forget(project, ForgetScope(fact=Fact.objects.get(subject="billing").pk))
        transaction.set_rollback(True)
    replay(tombstones.read_file(file))
    edits.edit(talk.messages.get(seq=2), "Where are the two keys?", talk.creator)
    cycle.run(datetime.now(UTC) + timedelta(hours=1), project)
    assert not Fact.objects.filter(subject="billing").exists()


def test_tombstones_of_redacted_words_can_be_read_again(talk, project, owner, file):
    """A restore writes all tombstones of the database into the file."""
    entry_operations.redact(talk.entries.get(), "owns", owner)
    tombstones.append_to_file(tombstones.records_of(Tombstone.objects.all()))
    Tombstone.objects.all().delete()
    assert replay(tombstones.read_file(file))[TombstoneKind.REDACTED] == 1
    assert Tombstone.objects.get(kind=TombstoneKind.REDACTED).project == project


def test_half_a_line_is_passed_over_and_the_next_one_stands_by_itself(talk, project, file):
    [first, second] = talk.messages.order_by("seq").values_list("pk", flat=True)[:2]
    forget(project, ForgetScope(message=first))
    whole = file.read_text()
    file.write_text(whole + whole.splitlines()[0][:50])
    forget(project, ForgetScope(message=second))
    subjects = [stone.subject for stone in tombstones.read_file(file)]
    assert subjects[: len(whole.splitlines())] == [
        json.loads(line)["subject"] for line in whole.splitlines()
    ]
    assert str(second) in subjects


@pytest.mark.parametrize(
    "line", ["nonsense\n", '{"at": "2026"}\n', '{"kind": "message", "subject": "x"}\n', "[]\n"]
)
def test_a_line_that_is_no_tombstone_is_named(file, line):
    good = {"at": AT.isoformat(), "project": "0" * 32, "kind": "fact", "subject": "x"}
    file.write_text(json.dumps(good) + "\n" + line + json.dumps(good) + "\n")
    with pytest.raises(tombstones.TombstoneFileError, match="line 2"):
        list(tombstones.read_file(file))


@pytest.mark.parametrize("kind", ["message", "file", "project", "user"])
def test_a_line_whose_subject_is_no_id_is_named(file, kind):
    line = {"at": AT.isoformat(), "project": "0" * 32, "kind": kind, "subject": "x"}
    file.write_text(json.dumps(line) + "\n")
    with pytest.raises(tombstones.TombstoneFileError, match="line 1"):
        list(tombstones.read_file(file))
