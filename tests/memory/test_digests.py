"""The layers settle: nothing twice, nothing lost, within the budget."""

from datetime import UTC, datetime, timedelta

import pytest

from chat.conversations import sessions
from chat.conversations.messages import draft, post_messages
from chat.models import Session
from memory.forgetting.service import ForgetScope, forget
from memory.layers import cycle, digests
from memory.layers.bank_cache import rendered_bank
from memory.layers.conversations import summarise
from memory.models import Cursor, Entry, EntryRevision, EntryStatus, Ladder
from memory.moderation import entry_operations
from tests.memory.daily_entries import remember
from tests.scripted import Answer

pytestmark = pytest.mark.django_db(transaction=True)

START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def talk(project, owner, day: int, hour: int = 0) -> Session:
    at = START + timedelta(days=day, hours=hour)
    session = Session.objects.create(
        project=project, creator=owner, title=f"Day {day}", created_at=at, last_activity_at=at
    )
    texts = [f"On day {day} the build {day}{hour} took {day * 7 + n} minutes." for n in range(4)]
    post_messages(session, [draft(text, created_at=at) for text in texts])
    return session


def snapshot() -> list:
    return sorted(Entry.objects.values_list("pk", "state", "parent", "revision", "summary"))


@pytest.fixture
def small(project):
    project.bank_max_tokens = 300
    project.save()
    return project


def test_layers_settle_and_a_second_cycle_changes_nothing(small, owner):
    for day in range(40):
        talk(small, owner, day)
    talk(small, owner, 3, hour=2)
    now = START + timedelta(days=75)
    cycle.run(now)
    layers = set(Entry.objects.values_list("granularity", flat=True))
    assert layers == {"conversation", "day", "week", "month"}
    before = snapshot()
    report = cycle.run(now)
    assert snapshot() == before
    assert (report.summarised, report.rolled_up) == (0, 0)


def test_every_digest_can_be_followed_down_to_its_messages(small, owner):
    for day in range(30):
        talk(small, owner, day)
        talk(small, owner, day - day % 3, hour=2 + day % 3)
    cycle.run(START + timedelta(days=65))
    tops = Entry.objects.filter(parent=None)
    covered = []

    def descend(entry):
        if entry.granularity == "conversation":
            covered.append((entry.session_id, entry.first_seq, entry.last_seq))
        for child in entry.children.all():
            assert child.state == EntryStatus.ABSORBED
            descend(child)

    for top in tops:
        descend(top)
    assert sorted(covered) == sorted((s.pk, 1, 4) for s in Session.objects.all())


def test_the_bank_stays_within_its_budget_at_every_moment(small, owner):
    for day in range(60):
        talk(small, owner, day)
        cycle.run(START + timedelta(days=day, hours=2))
        bank = rendered_bank(small)
        assert bank.tokens <= 300
    assert bank.tokens > 100


def test_a_late_arrival_rewrites_its_digest_once(small, owner):
    for day in range(20):
        talk(small, owner, day)
        talk(small, owner, day, hour=2)
    now = START + timedelta(days=22)
    cycle.run(now)
    day = Entry.objects.get(granularity="day", period_key="2026-01-07")
    assert day.revision == 1
    talk(small, owner, 2, hour=3)
    for extra in range(6):
        talk(small, owner, 20, hour=extra)
    cycle.run(now)
    cycle.run(now)
    after = Entry.objects.get(granularity="day", period_key="2026-01-07")
    assert after.pk == day.pk
    assert after.children.count() == 3
    assert after.revision in (1, 2)
    assert EntryRevision.objects.filter(entry=after).count() == after.revision - 1
    assert Entry.objects.filter(state=EntryStatus.STALE).count() == 0


def test_a_digest_that_cannot_be_written_leaves_its_children_as_they_are(small, owner, scripted):
    for day in range(12):
        talk(small, owner, day)
        talk(small, owner, day, hour=2)
    scripted.default = "- " + "Something was said about the build. " * 4
    for session_id in cycle.due(START + timedelta(days=20)).sessions:
        summarise(session_id, START + timedelta(days=20))
    before = snapshot()
    scripted.default = Answer(status=500)
    assert digests.update_layers(small.pk, START + timedelta(days=20)) is False
    assert snapshot() == before
    ladder = Ladder.objects.get(pk=small.pk)
    assert ladder.failures == 1
    assert "returned an error" in ladder.last_error
    assert cycle.due(START + timedelta(days=20)).projects == []


def test_a_digest_that_its_model_cannot_write_leaves_the_others(small, owner, scripted):
    small.bank_max_tokens = 150
    small.save()
    for day in range(4):
        talk(small, owner, day)
        talk(small, owner, day, hour=2)
    now = START + timedelta(days=5)
    scripted.default = "- " + "Something was said about the build. " * 4
    for session_id in cycle.due(now).sessions:
        summarise(session_id, now)
    usual = scripted.default

    def update_without(day: str) -> list[str]:
        scripted.default = lambda request: "{}" if day in str(request["messages"]) else usual
        digests.update_layers(small.pk, now)
        [ladder] = Ladder.objects.all()
        assert (ladder.failures, "summary could not be used" in ladder.last_error) == (1, True)
        Ladder.objects.update(failures=0, next_try_at=None)
        days = Entry.objects.filter(granularity="day").order_by("period_key")
        return [day.period_key[-2:] for day in days]

    assert update_without("6 Jan 2026") == ["05", "07", "08"]
    # A rewrite that fails leaves the others too.
    Entry.objects.filter(granularity="day", period_key="2026-01-05").update(
        state=EntryStatus.STALE, sources_hash=""
    )
    assert update_without("5 Jan 2026") == ["05", "06", "07", "08"]


@pytest.fixture
def update_without(small, owner, scripted):
    """Return a function that updates the layers of 28 days once, while the model cannot write about
    some days. It returns the number of days that are written, and the keys of longer periods.
    """
    small.bank_max_tokens = 150
    small.save()
    for day in range(28):
        for _ in range(2):
            remember(small, owner, "- Something was said about the build.", day)
    usual = "- " + "Something was said about the build. " * 4

    def update(*days: str) -> tuple[int, list[str]]:
        def answer(request):
            return "{}" if any(day in str(request["messages"]) for day in days) else usual

        scripted.default = answer
        Ladder.objects.update(next_try_at=None)
        digests.update_layers(small.pk, START + timedelta(days=70))
        longer = Entry.objects.filter(granularity__in=("week", "month"))
        keys = longer.order_by("period_key").values_list("period_key", flat=True)
        return Entry.objects.filter(granularity="day").count(), list(keys)

    return update


def test_days_that_always_fail_stop_only_their_weeks_and_months(update_without):
    for failures in (1, 2):
        written = update_without("14 Jan 2026", "20 Jan 2026")
        assert written == (26, ["2026-W02", "2026-W05"])
        assert Ladder.objects.get().failures == failures
    days, longer = update_without()
    assert (days, {"2026-W03", "2026-W04"} <= {*longer}) == (28, True)
    assert Ladder.objects.get().failures == 0


def test_the_next_update_begins_after_the_days_that_ended_the_last(update_without):
    failing = ["Mon 5 Jan 2026", "Tue 6 Jan 2026", "Wed 7 Jan 2026"]
    assert update_without(*failing) == (0, [])
    assert update_without(*failing) == (25, ["2026-W03", "2026-W04", "2026-W05"])


def test_an_only_entry_of_a_period_gets_no_digest(small, owner, scripted):
    small.bank_max_tokens = 150
    small.save()
    for day in (*range(12), 30, 70):
        talk(small, owner, day)
    talk(small, owner, 1, hour=2)
    scripted.default = "- " + "Something was said about the build. " * 4
    cycle.run(START + timedelta(days=130))
    digests = Entry.objects.exclude(granularity="conversation")
    assert {(digest.granularity, digest.period_key) for digest in digests} == {
        *(("day", "2026-01-06"), ("week", "2026-W02"), ("week", "2026-W03")),
        ("month", "2026-01"),
    }
    assert all(digest.children.count() > 1 for digest in digests)
    assert len(scripted.requests) == Session.objects.count() + digests.count()
    # The only talks of their months are as they were.
    alone = Entry.objects.filter(parent=None, granularity="conversation")
    assert set(alone.values_list("period_key", "state")) == {
        *(("2026-02-04", "live"), ("2026-03-16", "live"))
    }


@pytest.mark.parametrize("act", ["pinned", "hidden", "forgotten"])
def test_a_corrected_digest_stays_when_one_child_is_left(small, owner, act):
    small.bank_max_tokens = 150
    small.save()
    for hour in range(4):
        talk(small, owner, 3, hour)
        talk(small, owner, 4, hour)
        talk(small, owner, 5, hour)
    now = START + timedelta(days=20)
    cycle.run(now)
    digest = Entry.objects.get(granularity="day", period_key="2026-01-08")
    entry_operations.edit(digest, f"{digest.summary}\n- Ana decided on the blue build.", owner)
    cycle.run(now)
    first, *rest = digest.children.order_by("first_source_at")
    for child in rest:
        if act == "pinned":
            Entry.objects.filter(pk=child.pk).update(tokens=1)
            child.refresh_from_db()
            entry_operations.pin(child, True, owner)
        elif act == "hidden":
            entry_operations.set_hidden(child, True, owner)
        else:
            forget(small, ForgetScope(session=child.session_id))
    cycle.run(now)
    digest.refresh_from_db()
    assert list(digest.children.all()) == [first]
    is_shown = "Ana decided on the blue build." in digest.summary
    # A correction may contain words that were forgotten.
    assert is_shown == (act != "forgotten")
    assert digest.state != EntryStatus.STALE and digest.summary


def test_a_pinned_entry_stays_where_it_is(small, owner):
    for day in range(10):
        talk(small, owner, day)
    for session_id in cycle.due(START + timedelta(days=10)).sessions:
        summarise(session_id, START + timedelta(days=10))
    oldest = Entry.objects.order_by("last_source_at").first()
    oldest.pinned = True
    oldest.save()
    cycle.run(START + timedelta(days=75))
    oldest.refresh_from_db()
    assert (oldest.state, oldest.parent) == (EntryStatus.LIVE, None)
    assert oldest.pk in [entry_id.id for entry_id in rendered_bank(small).included]


def test_entries_that_an_earlier_version_left_out_are_live_again(small, owner):
    talk(small, owner, 0)
    cycle.run(START + timedelta(days=1))
    entry = Entry.objects.get()
    Entry.objects.filter(pk=entry.pk).update(state=EntryStatus.FADED)
    digests.update_layers(small.pk, START)
    entry.refresh_from_db()
    assert entry.state == EntryStatus.LIVE


def test_a_deleted_session_leaves_no_trace_in_the_digests(small, owner, api, monkeypatch):
    for day in range(20):
        talk(small, owner, day)
        talk(small, owner, day, hour=2)
    cycle.run(START + timedelta(days=22))
    chat_session = Session.objects.get(title="Day 3", created_at=START + timedelta(days=3))
    word = "the build 30 took"
    assert Entry.objects.filter(summary__contains=word).exclude(session=chat_session).exists()
    assert api(owner).delete(f"/api/v1/sessions/{chat_session.pk}/").status_code == 204
    assert word not in rendered_bank(small).text
    monkeypatch.setattr(sessions, "UNDO_WINDOW", timedelta(0))
    assert sessions.purge_deleted() == 1
    cycle.run(START + timedelta(days=22))
    assert not Entry.objects.filter(summary__contains=word).exists()
    assert not Entry.objects.filter(state=EntryStatus.STALE).exists()


def test_an_entry_hidden_while_its_digest_is_written_stays_hidden(small, owner, scripted):
    scripted.default = "- " + "Something was said about the build. " * 4
    for day in range(12):
        talk(small, owner, day)
        talk(small, owner, day, hour=2)
    now = START + timedelta(days=14)
    for session_id in cycle.due(now).sessions:
        summarise(session_id, now)
    hidden = Entry.objects.order_by("first_source_at").first()

    def hide(request):
        entry_operations.set_hidden(hidden, True)
        return "- A digest of both."

    scripted.queue(hide)
    digests.update_layers(small.pk, now)
    hidden.refresh_from_db()
    assert (hidden.state, hidden.parent) == (EntryStatus.HIDDEN, None)


def test_the_children_of_an_approved_digest_are_absorbed_beside_a_digest_without_children(
    small, owner, remember
):
    small.bank_max_tokens = 5_000
    small.save()
    approved = remember("- A day", granularity="day", period_key="2026-01-05")
    child = remember("- A chat", talk(small, owner, 0), parent=approved)
    Cursor.objects.update(summarised_through=4, unsummarised_messages=0)
    empty = remember("- A week", granularity="week", period_key="2026-W01", state="stale")
    digests.update_layers(small.pk, START + timedelta(days=3))
    child.refresh_from_db()
    assert child.state == EntryStatus.ABSORBED
    assert not Entry.objects.filter(pk=empty.pk).exists()


def test_a_cycle_reports_each_conversation(small, owner):
    for day in range(2):
        talk(small, owner, day)
    counts: list[int] = []
    report = cycle.run(
        START + timedelta(days=3), progress=lambda report: counts.append(report.summarised)
    )
    assert counts[:2] == [1, 2]
    assert (report.summarised, report.skipped) == (2, 0)
