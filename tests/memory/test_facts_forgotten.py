"""Forgetting subtracts from the facts too: what goes, what stays, what does not come back."""

import io
import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from threading import Event, Thread

import pytest
from django.db import connection, transaction

from chat.conversations import edits
from chat.conversations.messages import draft, post_messages
from chat.importers import import_file
from chat.models import Session
from memory import facts
from memory.facts import Statement, extraction
from memory.forgetting import facts as forgotten
from memory.forgetting import tombstones
from memory.forgetting.replay import replay
from memory.forgetting.service import ForgetScope, forget, preview
from memory.layers import cycle
from memory.models import Entry, Fact, FactSource, Tombstone, TombstoneKind
from memory.moderation import entry_operations
from memory.portability import ExportScope, export
from projects.models import Membership
from projects.services import create_project

pytestmark = pytest.mark.django_db

MARCH = datetime(2026, 3, 1, 10, tzinfo=UTC)
JUNE = datetime(2026, 6, 1, 10, tzinfo=UTC)
PLATFORM = "The platform team owns billing these days."


def claim(object: str = "platform team", line: int = 1, **fields) -> dict[str, object]:
    usual = {"subject": "billing", "predicate": "is owned by", "since": None, "personal": False}
    return usual | {"object": object, "line": line, "confidence": 0.9} | fields


def answer(*claims: dict, summary: str = "Who owns what.") -> str:
    return json.dumps({"summary": [summary], "facts": list(claims)})


@pytest.fixture
def say(project, owner, scripted):
    """Has a chat told and settled: its messages, and the claims found in them."""

    def add_session(*texts: str, claims=(), at=MARCH, user=owner, **draft_fields: str) -> Session:
        session = Session.objects.create(project=project, creator=user, title="Talk")
        post_messages(session, [draft(text, author=user, created_at=at) for text in texts])
        Session.objects.filter(pk=session.pk).update(last_activity_at=at)
        scripted.say(answer(*claims, **draft_fields))
        cycle.run(at + timedelta(hours=1), project)
        return session

    return add_session


@pytest.fixture
def give(project):
    def create_fact(user, subject: str = "The door", **fields) -> Fact:
        member = Membership.objects.select_related("project", "user").get(user=user)
        statement = Statement(subject, "is", "green and locked", MARCH, **fields)
        return facts.create_fact(member, statement)[0]

    return create_fact


def words() -> str:
    return " ".join(fact.text for fact in Fact.objects.all())


def test_a_fact_goes_alone_and_its_chat_does_not_tell_it_again(project, say, scripted, owner):
    session = say(PLATFORM, "Lunch is at noon.", claims=[claim()])
    receipt = forget(project, ForgetScope(fact=Fact.objects.get().pk), owner)
    assert receipt.removed["facts"] == 1 and receipt.removed["messages"] == 0
    assert "platform" not in Tombstone.objects.get(kind=TombstoneKind.FACT).subject

    scripted.say(answer(claim()))
    edits.edit(session.messages.get(seq=2), "Lunch is at one.", owner)
    cycle.run(JUNE, project)
    assert not Fact.objects.exists()

    say("As I said, the platform team owns billing.", claims=[claim()], at=JUNE)
    assert Fact.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_forgotten_fact_does_not_return_in_an_imported_project(project, say, scripted, owner):
    say(PLATFORM, "Lunch is at noon.", claims=[claim()], summary="The platform team eats at noon.")
    forget(project, ForgetScope(fact=Fact.objects.get().pk), owner)
    entry_operations.redact(Entry.objects.get(), "noon", owner)
    copy = create_project(owner, name="Copy")
    file = io.BytesIO()
    export(ExportScope(project), file)
    import_file(copy, owner, "export.zip", file)
    scripted.say(answer(claim(), summary="They eat at noon."))
    entry_operations.request_rewrite(Entry.objects.get(project=copy), owner)
    cycle.run(JUNE, copy)
    assert not Fact.objects.exists()
    assert Entry.objects.get(project=copy).summary == "- They eat at […]."


@pytest.mark.django_db(transaction=True)
def test_an_export_of_an_owner_has_no_fact_of_a_withheld_summary(project, say, owner):
    say(PLATFORM, claims=[claim()])
    for is_withheld, count in ((False, 1), (True, 0)):
        Entry.objects.update(withheld=is_withheld)
        assert export(ExportScope(project, owner), io.BytesIO())["facts"] == count
        assert export(ExportScope(project), io.BytesIO())["facts"] == 1


def test_a_tombstone_of_an_earlier_version_is_obeyed(project, say, scripted, owner):
    session = say(PLATFORM)
    text = f"{session.pk}\nbilling is owned by platform team\n"
    subject = sha256(text.encode()).hexdigest()
    Tombstone.objects.create(project=project, kind=TombstoneKind.FACT, subject=subject)
    scripted.say(answer(claim()))
    entry_operations.request_rewrite(Entry.objects.get(), owner)
    cycle.run(JUNE, project)
    assert not Fact.objects.exists()


def test_a_corrected_fact_does_not_return_as_extracted(project, say, scripted, owner):
    session = say(PLATFORM, "Lunch is at noon.", claims=[claim()])
    fact = facts.edit(Fact.objects.get(), Statement("billing", "is run by", "Ann", MARCH), owner)
    forget(project, ForgetScope(fact=fact.pk), owner)
    scripted.say(answer(claim()))
    edits.edit(session.messages.get(seq=2), "Lunch is at one.", owner)
    cycle.run(JUNE, project)
    assert not Fact.objects.exists()


def test_redacted_text_goes_from_earlier_versions_too(project, say, scripted, owner):
    say(PLATFORM, claims=[claim()], summary="The platform team owns billing.")
    facts.edit(Fact.objects.get(), Statement("billing", "is run by", "Ann", MARCH), owner)
    entry_operations.redact(Entry.objects.get(), "platform", owner)
    assert words() == "billing is run by Ann"
    scripted.say(answer(claim()))
    entry_operations.request_rewrite(Entry.objects.get(), owner)
    cycle.run(JUNE, project)
    assert words() == "billing is run by Ann"


def test_with_its_sources_the_messages_go_too(project, say):
    session = say(PLATFORM, "Lunch is at noon.", claims=[claim()])
    receipt = forget(project, ForgetScope(fact=Fact.objects.get().pk, sources=True))
    assert receipt.removed["messages"] == 1
    assert session.messages.get(seq=1).text == "" and session.messages.get(seq=2).text


def test_a_preview_counts_and_changes_nothing(project, say):
    say(PLATFORM, claims=[claim()])
    plan = preview(project, ForgetScope(message=FactSource.objects.get().message_id))
    assert plan.removed["facts"] == 1
    assert Fact.objects.exists() and FactSource.objects.exists()


def test_the_search_afterwards_finds_where_a_fact_still_says_it(project, say, give, owner):
    say(PLATFORM, claims=[claim()])
    member = Membership.objects.select_related("project", "user").get(user=owner)
    other = Statement("rule", "is", "the platform team owns billing these days", MARCH)
    other_fact, _ = facts.create_fact(member, other)
    receipt = forget(project, ForgetScope(message=FactSource.objects.get().message_id))
    assert ("fact", other_fact.pk) in receipt.found


def test_a_fact_with_two_messages_stays_while_one_does(project, say):
    first = say(PLATFORM, claims=[claim()])
    say(PLATFORM, claims=[claim()], at=MARCH + timedelta(days=3))
    forget(project, ForgetScope(session=first.pk))
    assert Fact.objects.get().valid_from == MARCH + timedelta(days=3)


def test_a_fact_whose_words_stood_in_a_neighbour_goes_with_that(project, say):
    session = say("Who owns billing now?", "The platform team.", claims=[claim(line=2)])
    forget(project, ForgetScope(message=session.messages.get(seq=1).pk))
    assert not Fact.objects.exists()


def test_a_fact_with_a_source_of_its_own_stays_and_is_withheld_until_rewritten(
    project, say, scripted
):
    session = say("Lunch is at noon.", PLATFORM, claims=[claim(line=2)])
    forget(project, ForgetScope(message=session.messages.get(seq=1).pk))
    assert Fact.objects.exists() and not Fact.objects.with_validity().exists()
    scripted.say(answer(claim()))
    cycle.run(JUNE, project)
    assert Fact.objects.with_validity().count() == 1


def test_a_user_takes_along_what_they_gave_and_what_is_about_them(
    project, say, give, editor, owner
):
    give(editor, "The gate"), give(owner)
    give(editor, "Edgar", user_id=editor.pk)
    changed = give(owner, "The key")
    facts.edit(changed, Statement("The key", "is", "lost", MARCH), editor)
    say("I prefer tea.", claims=[claim("tea", subject="I", personal=True)], user=editor)
    forget(project, ForgetScope(user=editor.pk))
    assert words() == "The door is green and locked"


def test_before_a_moment_deletes_earlier_messages_and_facts(project, say, give, owner):
    early = give(owner)
    Fact.objects.filter(pk=early.pk).update(recorded_at=MARCH)
    give(owner, "The gate")
    say(PLATFORM, claims=[claim()], at=MARCH)
    forget(project, ForgetScope(before=JUNE))
    assert words() == "The gate is green and locked"


def test_before_a_moment_keeps_what_was_written_later(project, give, owner, tmp_path, settings):
    settings.TOMBSTONES = tmp_path / "tombstones.jsonl"
    fact = give(owner)
    Fact.objects.filter(pk=fact.pk).update(recorded_at=MARCH)
    fact.refresh_from_db()
    facts.edit(fact, Statement("The door", "is", "open", MARCH), owner)
    with transaction.atomic():
        for scope in (ForgetScope(before=JUNE), ForgetScope(user=owner.pk, before=JUNE)):
            forget(project, scope)
            assert [row.text for row in Fact.objects.all()] == ["The door is open"]
        transaction.set_rollback(True)
    assert replay(tombstones.read_file(settings.TOMBSTONES))
    assert [row.text for row in Fact.objects.all()] == ["The door is open"]


def test_an_entry_takes_its_facts_along(project, say):
    say(PLATFORM, claims=[claim()])
    forget(project, ForgetScope(entry=Entry.objects.get().pk))
    assert not Fact.objects.exists()


def test_earlier_versions_are_deleted_with_their_sources(project, say, owner):
    first = say(PLATFORM, claims=[claim()])
    fact = Fact.objects.get()
    statement = Statement("billing", "is owned by", "payments team", MARCH)
    facts.edit(fact, statement, owner)
    at = MARCH + timedelta(days=2)
    say("The payments team owns billing.", claims=[claim("payments team")], at=at)
    assert FactSource.objects.filter(fact=fact).count() == 2
    forget(project, ForgetScope(session=first.pk))
    assert words() == "billing is owned by payments team"


def test_a_retired_fact_goes_with_its_message(project, say, scripted, owner):
    session = say(PLATFORM, claims=[claim()])
    scripted.say(answer())
    [message] = session.messages.all()
    edits.edit(message, "Nothing more on that.", owner)
    cycle.run(JUNE, project)
    assert Fact.objects.get().retired_at
    forget(project, ForgetScope(message=message.pk))
    assert not Fact.objects.exists()


def test_a_dissolved_summary_takes_its_facts_along(project, say, owner):
    session = say(PLATFORM, claims=[claim()])
    edits.delete(session.messages.get())
    assert not Fact.objects.with_validity().exists()
    cycle.run(JUNE, project)
    assert not Entry.objects.exists() and not Fact.objects.exists()


def test_a_summary_that_was_deleted_in_part_keeps_no_trace_of_it(project, say, scripted, owner):
    session = say(PLATFORM, "Lunch is at noon.", claims=[claim()])
    scripted.say(answer())
    edits.delete(session.messages.get(seq=1))
    cycle.run(JUNE, project)
    assert Entry.objects.exists() and not Fact.objects.exists()


def test_a_hidden_fact_is_forgotten_too(project, say, owner):
    say(PLATFORM, claims=[claim()])
    facts.hide(Fact.objects.get(), owner)
    entry_operations.set_hidden(Entry.objects.get(), True, owner)
    forget(project, ForgetScope(message=FactSource.objects.get().message_id))
    assert not Fact.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_summary_that_tells_it_at_the_same_time_does_not_bring_it_back(project, say, monkeypatch):
    session = say(PLATFORM, "Lunch is at noon.", claims=[claim()])
    entry, fact = session.entries.get(), Fact.objects.get()
    statement = Statement("billing", "is owned by", "platform team", MARCH)
    extracted = [extraction.ExtractedFact(statement, session.messages.get(seq=1))]
    waits = Event()
    lock = forgotten.lock_topics

    def forgetting(*args) -> None:
        """It has the lock, and the summary comes for it before the fact goes."""
        lock(*args)
        writer.start()
        waits.wait(1)

    def write() -> None:
        try:
            with transaction.atomic():
                extraction.record_extracted(
                    entry, extracted, [extracted[0].message], JUNE, is_whole=True
                )
        finally:
            connection.close()

    writer = Thread(target=write)
    monkeypatch.setattr(forgotten, "lock_topics", forgetting)
    forget(project, ForgetScope(fact=fact.pk))
    writer.join(20)
    assert not Fact.objects.exists()
