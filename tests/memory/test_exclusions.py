"""Entries that are excluded from a digest, and text that changes during a summary."""

from datetime import timedelta

import pytest

from chat.conversations.sessions import delete_session, restore_session
from memory.forgetting.service import ForgetScope, forget
from memory.layers import cycle, digests
from memory.layers.bank_cache import rendered_bank
from memory.layers.coverage import read_range
from memory.models import Activity, ActivityVerb, Entry, EntryRevision, EntryStatus
from memory.moderation import entry_operations
from tests.memory.daily_entries import NOW, remember

pytestmark = pytest.mark.django_db(transaction=True)

TALK = (
    "- {} was talked over at length, with its owner, its plan and what it takes. " + "More. " * 25
)


@pytest.fixture
def day(project, owner, scripted):
    """A day that tells of three conversations, as its model does of all that it is told."""
    project.bank_max_tokens = 200
    project.save()
    for name in ("Alpha", "Beta", "Gamma"):
        remember(project, owner, TALK.format(name))
    scripted.default = "- A day about Alpha, Beta and Gamma."
    digests.update_layers(project.pk, NOW)
    return Entry.objects.get(granularity="day")


def entry_about(name: str) -> Entry:
    return Entry.objects.get(granularity="conversation", summary__contains=name)


def test_a_pinned_entrys_part_of_a_digest_goes_with_its_chat(day, project, owner):
    pinned = entry_about("Alpha")
    entry_operations.pin(pinned, True, owner)
    assert "Alpha" in rendered_bank(project).text
    delete_session(pinned.session)
    assert "Alpha" not in rendered_bank(project).text


def test_a_pinned_entrys_part_of_a_digest_goes_when_it_is_hidden(day, project, owner):
    pinned = entry_about("Alpha")
    entry_operations.pin(pinned, True, owner)
    entry_operations.set_hidden(pinned, True, owner)
    assert "Alpha" not in rendered_bank(project).text


def test_text_redacted_in_a_pinned_entry_goes_from_its_digest(day, project, owner):
    pinned = entry_about("Alpha")
    entry_operations.pin(pinned, True, owner)
    entry_operations.redact(pinned, "Alpha", owner)
    assert not Entry.objects.filter(summary__contains="Alpha").exists()


def test_an_earlier_text_of_the_digest_goes_too(day, project, owner, scripted):
    pinned = entry_about("Alpha")
    entry_operations.pin(pinned, True, owner)
    scripted.default = "- A day about Beta and Gamma."
    cycle.run(NOW)
    earlier = EntryRevision.objects.filter(entry=day, summary__contains="Alpha")
    assert earlier.exists()
    delete_session(pinned.session)
    assert not earlier.exists()


def test_a_digest_that_tells_nothing_of_it_since_stands_again_without_a_call(
    day, project, owner, scripted
):
    pinned = entry_about("Alpha")
    entry_operations.pin(pinned, True, owner)
    scripted.default = "- A day about Beta and Gamma."
    cycle.run(NOW)
    before = Entry.objects.get(pk=day.pk)
    calls, acts = (
        len(scripted.requests),
        Activity.objects.filter(verb=ActivityVerb.REWRITTEN).count(),
    )
    delete_session(pinned.session)
    assert Entry.objects.get(pk=day.pk).withheld
    cycle.run(NOW)
    after = Entry.objects.get(pk=day.pk)
    assert (after.summary, after.revision) == (before.summary, before.revision)
    assert (after.state, after.withheld) == (before.state, False)
    assert len(scripted.requests) == calls
    assert Activity.objects.filter(verb=ActivityVerb.REWRITTEN).count() == acts


def test_digests_of_a_chat_that_is_brought_back_stand_as_they_stood(project, owner, scripted):
    project.bank_max_tokens = 150
    project.save()
    for number in range(4):
        entry = remember(project, owner, TALK.format(number), day=number // 2)
        entry.sources_hash = read_range(entry.session, 0).fingerprint
        entry.save()
    scripted.default = TALK.format("Everything")
    later = NOW + timedelta(days=9)
    cycle.run(later)
    entry_operations.request_rewrite(Entry.objects.get(granularity="week"), owner)
    scripted.default = TALK.format("All of it")
    cycle.run(later)
    columns = ("pk", "summary", "revision", "parent", "withheld")
    before, earlier = set(Entry.objects.values_list(*columns)), EntryRevision.objects.count()
    calls = len(scripted.requests)
    delete_session(entry.session)
    cycle.run(later)
    restore_session(entry.session.pk)
    for _ in range(2):
        cycle.run(later)
    assert set(Entry.objects.values_list(*columns)) == before
    assert EntryRevision.objects.count() == earlier == 1
    assert len(scripted.requests) == calls


def test_an_edit_of_a_digest_during_its_rewrite_stays(day, project, editor, scripted):
    entry_operations.request_rewrite(day, editor)

    def meanwhile(request):
        entry_operations.edit(day, "- Alpha is over, said Edgar.", editor)
        return "- A day about nothing."

    scripted.queue(meanwhile)
    scripted.default = lambda request: f"- Edgar was heard: {'said Edgar' in str(request)}."
    cycle.run(NOW)
    assert Entry.objects.get(pk=day.pk).summary == "- Edgar was heard: True."


def test_an_edit_forgotten_during_a_rewrite_stays_away(day, project, editor, scripted):
    entry_operations.edit(day, "- Edgar's own words.", editor)
    entry_operations.request_rewrite(day, editor)

    def meanwhile(request):
        assert "own words" in str(request)
        forget(project, ForgetScope(user=editor.pk))
        return "- Edgar's own words, and more."

    scripted.queue(meanwhile)
    cycle.run(NOW)
    after = Entry.objects.get(pk=day.pk)
    assert "own words" not in after.summary
    assert after.state in (
        EntryStatus.LIVE,
        EntryStatus.ABSORBED,
        EntryStatus.FADED,
        EntryStatus.PROPOSED,
    )


def test_words_redacted_in_a_day_stay_out_of_the_week_that_quotes_its_chats(project, owner):
    project.bank_max_tokens, project.system_model = 200, "extractive"
    project.save()
    for number in range(4):
        remember(project, owner, TALK.format(f"Alpha{number}"), number // 2)
    later = NOW + timedelta(days=7)
    digests.update_layers(project.pk, later)
    week = Entry.objects.get(granularity="week")
    day = week.children.filter(summary__contains="Alpha0").get()
    assert "Alpha0" in week.summary
    entry_operations.redact(day, "Alpha0", owner)
    digests.update_layers(project.pk, later)
    week.refresh_from_db()
    assert week.state != EntryStatus.STALE
    assert "Alpha3" in week.summary
    assert "Alpha0" not in f"{week.lines} {week.summary}"
