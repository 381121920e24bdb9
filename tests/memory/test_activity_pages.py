"""The activity log: what was done, and what is due next."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chat.conversations.sessions import update_session
from chat.models import Session, Visibility
from memory.facts import Statement, create_fact
from memory.forgetting.service import ForgetScope, forget
from memory.models import Activity, ActivityVerb, Call, Cursor, Entry, EntryStatus, Ladder, Nudge
from memory.models.activity import record_activity
from memory.templatetags.activity import day_heading
from projects.models import Membership
from projects.services import set_archived
from tests.html import compact
from tests.memory.file_helpers import add_text

pytestmark = pytest.mark.django_db

ACTIVITY = "/projects/billing/memory/activity/"


@pytest.fixture
def read(client):
    def get(user, query: str = "") -> str:
        client.force_login(user)
        response = client.get(ACTIVITY + query)
        assert response.status_code == 200
        return " ".join(response.content.decode().split())

    return get


def done(text: str) -> str:
    return text.partition('id="done"')[2]


def test_archiving_is_in_the_log_but_not_that_of_private_chats(read, owner, editor, project, chat):
    update_session(chat, by=editor, archived=True)
    update_session(chat, by=owner, archived=False)
    private = Session.objects.create(project=project, creator=owner, visibility=Visibility.PRIVATE)
    update_session(private, by=owner, archived=True)
    set_archived(project, True, owner)
    set_archived(project, True, owner)
    verbs = Activity.objects.order_by("id").values_list("verb", "by__username")
    assert [*verbs] == [("archived", "edgar"), ("unarchived", "olive"), ("archived", "olive")]
    page = compact(done(read(owner)))
    assert "<b>olive</b>archived the project" in page
    assert f'<b>edgar</b>archived<a href="/projects/billing/chats/{chat.pk}/">' in page


def test_a_file_that_was_added_is_named_to_those_who_may_read_it(read, owner, editor, project):
    private = Session.objects.create(project=project, creator=owner, visibility=Visibility.PRIVATE)
    shared = add_text(project, owner, "plan.md", "The plan.")
    add_text(project, owner, "secret.md", "The secret.", session=private)
    link = f'<a href="/projects/billing/files/{shared.pk}/">plan.md</a>'
    assert f"<b>olive</b>added{link}" in compact(done(read(owner)))
    page = compact(done(read(editor)))
    assert f"<b>olive</b>added{link}" in page and "<b>olive</b>added a file" in page
    assert "secret.md" not in page


def test_an_activity_shows_its_user_reason_duration_and_cost(read, owner, editor, project, entry):
    record_activity(
        project.pk, ActivityVerb.HIDDEN, by=editor, reason="outdated", entry_id=entry.pk
    )
    cost = {"calls": 2, "input_tokens": 900, "output_tokens": 80, "cost": Decimal("0.0041")}
    record_activity(
        project.pk,
        ActivityVerb.SUMMARISED,
        entry_id=entry.pk,
        granularity="conversation",
        period_key="2026-03-12",
        duration_ms=3_240,
        **cost,
    )
    record_activity(
        project.pk,
        ActivityVerb.FAILED,
        session_id=entry.session_id,
        reason="It did not answer in time.",
    )
    text = done(read(owner))
    assert "<b>edgar</b> hid" in text
    assert "Outdated" in text
    assert "<b>Strata</b> summarised" in text
    assert "2 model calls, 900 tokens in, 80 out" in text
    assert "3.2 s" in text
    assert "$0.0041" in text
    assert "It did not answer in time." in text
    assert f"/projects/billing/memory/{entry.pk}/" in text
    assert text.index("failed") < text.index("summarised") < text.index("hid")


def test_the_log_is_grouped_by_day_in_the_projects_zone(read, owner, project):
    project.timezone = "Asia/Tokyo"
    project.save()
    record_activity(project.pk, ActivityVerb.PINNED, by=owner)
    record_activity(project.pk, ActivityVerb.HIDDEN, by=owner)
    text = done(read(owner))
    assert text.count("</h3>") == 1
    assert ">Today</h3>" in text
    at = Activity.objects.latest("id").at.astimezone(project.zone)
    assert f"> {at:%H:%M} </time>" in text


def test_days_are_named_as_people_name_them():
    today = timezone.localdate()
    assert day_heading(today) == "Today"
    assert day_heading(today - timedelta(days=1)) == "Yesterday"
    assert day_heading(date(2026, 3, 12)) == "Thu 12 Mar 2026"


@pytest.mark.parametrize("verb", ActivityVerb)
def test_each_act_is_a_sentence_with_a_filter(read, owner, project, verb):
    record_activity(project.pk, verb, by=owner, related=[project.pk])
    text = done(read(owner, f"?verb={verb}"))
    assert "<b>olive</b> " in text
    assert "%(" not in text and "None" not in text


def test_an_act_names_the_chat_and_counts_in_words(read, owner, project, entry):
    ids = [entry.pk, entry.session_id]
    period = {"granularity": "week", "period_key": "2026-W11"}
    record_activity(project.pk, ActivityVerb.ROLLED_UP, related=ids, **period)
    record_activity(project.pk, ActivityVerb.ROLLED_UP, related=ids[:1], **period)
    record_activity(project.pk, ActivityVerb.RECORDED, session_id=entry.session_id, count=1)
    record_activity(project.pk, ActivityVerb.PINNED, by=owner, entry_id=entry.pk)
    text = done(read(owner))
    assert "merged 2 memories into" in text
    assert "merged 1 memory into" in text
    assert (
        f'added 1 fact from <a href="/projects/billing/chats/{entry.session_id}/">The cut' in text
    )
    link = f'<a href="/projects/billing/memory/{entry.pk}/">The cutover</a>'
    assert f'pinned <i class="dot c-conversation"></i> {link}' in text


def test_reasons_of_people_and_of_review_are_distinguished(read, owner, project):
    record_activity(project.pk, ActivityVerb.HIDDEN, by=owner, reason="private")
    assert "Private" in done(read(owner))
    record_activity(project.pk, ActivityVerb.PROPOSED, reason="private")
    assert "Quotes a private chat" in done(read(owner))


@pytest.mark.parametrize(
    ("query", "verbs"),
    [
        ("?verb=pinned", {"pinned"}),
        ("?by=strata", {"merged"}),
        ("?verb=review", {"pinned"}),
        ("?verb=memory", {"merged"}),
        ("?verb=members", set()),
        ("?verb=pinned&by=strata", set()),
    ],
)
def test_it_is_filtered_by_what_and_by_whom(read, owner, project, query, verbs):
    record_activity(project.pk, ActivityVerb.PINNED, by=owner)
    record_activity(project.pk, ActivityVerb.ROLLED_UP)
    text = done(read(owner, query))
    assert {name for name in ("pinned", "merged") if f"</b> {name}" in text} == verbs


def test_it_is_filtered_by_a_person(read, owner, editor, project):
    record_activity(project.pk, ActivityVerb.PINNED, by=owner)
    record_activity(project.pk, ActivityVerb.HIDDEN, by=editor)
    text = done(read(owner, f"?by={editor.pk}"))
    assert "<b>edgar</b>" in text
    assert "<b>olive</b>" not in text


@pytest.mark.parametrize("query", ["?verb=dreamt", "?by=me", "?before=yesterday"])
def test_a_bad_filter_is_refused(client, owner, project, query):
    client.force_login(owner)
    assert client.get(ACTIVITY + query).status_code == 400


def test_older_ones_are_a_link_away(client, read, owner, project):
    for _ in range(51):
        record_activity(project.pk, ActivityVerb.PINNED, by=owner)
    text = read(owner, "?verb=pinned")
    link = text.partition('class="pager"><a href="')[2].partition('"')[0].replace("&amp;", "&")
    older = read(owner, link)
    assert older.count("</b> pinned") == 1
    # What is past does not change: nothing asks for it again.
    assert "data-poll" in text
    assert "data-poll" not in older


def test_the_page_asks_for_its_live_part(client, read, owner, project):
    record_activity(project.pk, ActivityVerb.PINNED, by=owner)
    part = read(owner, "?part=log")
    assert "</b> pinned" in part
    assert "Up next" in part
    assert "<html" not in part


def test_nobody_is_led_to_what_they_may_not_open(read, owner, editor, entry):
    Session.objects.update(visibility=Visibility.PRIVATE)
    record_activity(entry.project_id, ActivityVerb.READ, session_id=entry.session_id)
    assert str(entry.session_id) in done(read(editor))
    text = done(read(owner))
    assert "opened the private text of" in text
    assert str(entry.session_id) not in text
    assert "The cutover" not in text


def test_due_work_is_listed_with_its_time(read, owner, project, chat):
    Cursor.objects.update(
        failures=2,
        next_try_at=datetime(2026, 3, 12, 10, tzinfo=UTC),
        last_error="The model refused the key.",
    )
    ripe = datetime(2031, 5, 3, 9, tzinfo=UTC)
    Nudge.objects.all().delete()
    Ladder.objects.update_or_create(project=project, defaults={"ripe_at": ripe})
    text = read(owner)
    assert "failed 2 times, next try 12 Mar, 10:00" in text
    assert "The model refused the key." in text
    assert "next merge 3 May 2031, 09:00" in text
    Nudge.objects.create(project=project)
    assert "next check within a minute" in read(owner)
    Ladder.objects.update(next_try_at=ripe, last_error="It answered in another language.")
    assert "It answered in another language. Next try 3 May, 09:00." in read(owner)


def test_entries_due_for_a_rewrite_are_listed(read, owner, entry):
    assert "<dd>nothing</dd>" in compact(read(owner))
    Entry.objects.update(state=EntryStatus.STALE)
    assert f'1:<a href="/projects/billing/memory/{entry.pk}/"' in compact(read(owner))


def test_todays_allowance_and_when_it_goes_on(read, owner, project):
    Call.objects.create(
        project=project, kind="digest", model="m", input_tokens=900, output_tokens=200
    )
    assert "1,100 tokens, no limit" in read(owner)
    project.memory_daily_tokens = 5_000
    project.timezone = "Asia/Tokyo"
    project.save()
    assert "1,100 of 5,000 tokens" in read(owner)
    project.memory_daily_tokens = 1_000
    project.save()
    tomorrow = timezone.localdate(timezone=project.zone) + timedelta(days=1)
    assert f"Work continues {tomorrow.day} {tomorrow:%b}, 00:00" in read(owner)


def test_a_project_that_does_not_remember_has_nothing_due(read, owner, project):
    project.memory_enabled = False
    project.save()
    assert "Nothing is scheduled" in read(owner)


def test_viewers_read_it_and_strangers_get_404(client, read, viewer, stranger, project):
    read(viewer)
    client.force_login(stranger)
    assert client.get(ACTIVITY).status_code == 404


def test_it_takes_the_same_queries_however_much_there_is(client, owner, project, remember):
    client.force_login(owner)

    def more(count: int) -> None:
        for number in range(count):
            chat = Session.objects.create(project=project, creator=owner, title=f"Chat {number}")
            entry = remember(f"- {number}", chat, state=EntryStatus.STALE)
            Cursor.objects.create(session=chat, project=project, unsummarised_messages=2)
            record_activity(
                project.pk, ActivityVerb.SUMMARISED, by=owner, entry_id=entry.pk, session_id=chat.pk
            )

    more(2)
    client.get(ACTIVITY)
    with CaptureQueriesContext(connection) as few:
        client.get(ACTIVITY)
    more(15)
    with CaptureQueriesContext(connection) as many:
        client.get(ACTIVITY)
    assert len(many) == len(few) <= 18
    assert Activity.objects.count() == 17


def test_a_fact_that_was_forgotten_is_named_without_its_text(client, owner, project, viewer):
    member = Membership.objects.select_related("project", "user").get(user=owner)
    fact, _ = create_fact(member, Statement("The vault", "is in", "Bern", timezone.now()))
    forget(project, ForgetScope(fact=fact.pk), owner)
    client.force_login(viewer)
    for name in ("memory-activity", "overview"):
        response = client.get(reverse(name, args=["billing"]))
        assert response.status_code == 200
        assert "<b>olive</b>made Strata forget a fact" in compact(response.content.decode())


def test_numbers_of_tokens_are_grouped(read, owner, project, entry):
    tokens = {"calls": 2, "input_tokens": 12_900, "output_tokens": 1_080}
    record_activity(project.pk, ActivityVerb.REWRITTEN, entry_id=entry.pk, **tokens)
    assert "12,900 tokens in, 1,080 out" in read(owner)
