"""A line that states a fact which another fact ended has the day of its end in the bank."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.utils import timezone

from memory import facts
from memory.facts import Statement
from memory.facts.superseded import EndedFact
from memory.layers.bank_cache import rendered_bank
from memory.layers.history import bank_as_of
from memory.layers.lines import Line
from memory.models import Fact
from projects.models import Membership
from tests.memory.daily_entries import START, remember

pytestmark = pytest.mark.django_db(transaction=True)

ENDS = START + timedelta(days=10)


def own(project, user, team: str, since: datetime):
    statement = Statement("billing", "is owned by", team, valid_from=since)
    member = Membership.objects.get(project=project, user=user)
    fact, _ = facts.create_fact(member, statement)
    return fact


@pytest.fixture
def entry(project, owner):
    entry = remember(project, owner, "- x")
    texts = ("Platform owns billing.", "Platform likes tea.", "Ana owns the cutover.")
    entry.set_lines([Line(text, entry.day, "Ana", score=2.0) for text in texts])
    entry.save()
    return entry


def test_a_line_is_marked_when_a_fact_ends_its_fact(project, owner, entry):
    own(project, owner, "platform", START)
    before = rendered_bank(project)
    assert "until" not in before.text
    new = own(project, owner, "payments", ENDS)
    marked = rendered_bank(project)
    assert "- 5 Jan, Ana: “Platform owns billing.” (until 15 Jan)\n" in marked.text
    assert marked.text.count("until") == 1
    assert marked.version > before.version
    facts.hide(new, owner)
    assert rendered_bank(project).text == before.text


def test_a_mark_goes_when_the_new_fact_is_withdrawn(project, owner, entry):
    own(project, owner, "platform", START)
    before = rendered_bank(project).text
    new = own(project, owner, "payments", ENDS)
    assert rendered_bank(project).text != before
    Fact.objects.filter(pk=new.pk).update(retired_at=timezone.now())
    assert rendered_bank(project).text == before


@pytest.mark.parametrize("end", ["next fact", "entered"])
def test_a_line_is_marked_once_the_end_of_its_fact_has_come(
    project, owner, entry, end, monkeypatch
):
    until = timezone.now() + timedelta(days=9)
    fact = own(project, owner, "platform", START)
    own(project, owner, "payments", until if end == "next fact" else until + timedelta(days=9))
    if end == "entered":
        facts.close(fact, until, owner)
    assert "until" not in rendered_bank(project).text
    monkeypatch.setattr(timezone, "now", lambda: until)
    assert f"(until {until.day} {until:%b}" in rendered_bank(project).text


def test_a_mark_moves_when_an_earlier_start_of_the_new_fact_is_entered(project, owner, entry):
    own(project, owner, "platform", START)
    own(project, owner, "payments", ENDS)
    assert "(until 15 Jan)" in rendered_bank(project).text
    own(project, owner, "payments", ENDS - timedelta(days=3))
    assert "(until 12 Jan)" in rendered_bank(project).text


def test_a_mark_moves_when_the_project_changes_its_time_zone(project, owner, entry):
    own(project, owner, "platform", START)
    own(project, owner, "payments", ENDS.replace(hour=23))
    assert "(until 15 Jan)" in rendered_bank(project).text
    project.timezone = "Pacific/Auckland"
    project.save()
    assert "(until 16 Jan)" in rendered_bank(project).text


def test_a_past_moment_has_the_marks_of_that_moment(project, owner, entry):
    own(project, owner, "platform", START)
    before, moment = rendered_bank(project).text, timezone.now()
    own(project, owner, "payments", ENDS)
    assert bank_as_of(project, moment).text == before
    marked = bank_as_of(project, timezone.now()).text
    assert marked == rendered_bank(project).text
    assert "(until 15 Jan)" in marked


def test_a_line_that_reports_the_change_is_not_marked(project, owner, entry):
    text = "From 15 January the payments team owns billing, not the platform team any more."
    entry.set_lines([Line(text, entry.day, "Ana", score=2.0)])
    entry.save()
    own(project, owner, "the platform team", START)
    own(project, owner, "the payments team", ENDS)
    rendered = rendered_bank(project).text
    assert text in rendered
    assert "(until" not in rendered


def test_statements_after_the_end_are_not_marked(project, owner, entry):
    own(project, owner, "platform", START - timedelta(days=9))
    own(project, owner, "payments", START - timedelta(days=5))
    assert "until" not in rendered_bank(project).text


def test_the_end_has_its_year_if_the_line_has_another(project, owner, entry):
    own(project, owner, "platform", START)
    own(project, owner, "payments", datetime(2027, 2, 1, 12, tzinfo=UTC) - timedelta(days=365))
    end = date(2026, 2, 1)
    assert f"(until {end.day} Feb)" in rendered_bank(project).text


def test_a_bank_without_a_change_takes_one_query(project, owner, entry, django_assert_num_queries):
    own(project, owner, "platform", START)
    rendered_bank(project)
    with django_assert_num_queries(1):
        rendered_bank(project)


@pytest.mark.parametrize(
    ("text", "is_stated"),
    [
        ("billing is done by the po.", True),
        ("a report on billing is due.", False),
        ("the po has billing below 90 rpm.", True),
        ("from po to pm: billing moves.", False),
        ("billingはpoです", True),
    ],
)
def test_the_objects_of_an_ended_fact_are_whole_words(text, is_stated):
    fact = EndedFact("billing", "po", "pm", ENDS.date())
    assert fact.is_stated_in(text, START.date()) is is_stated


@pytest.mark.parametrize(
    ("text", "is_stated"),
    [
        ("the team has 2 members.", True),
        ("the team meets at 12:00.", False),
        ("the team meets at 2:30.", False),
        ("the team needs 0.2 l.", False),
        ("the members of the team: 2, all new.", True),
    ],
)
def test_a_number_is_not_found_in_another(text, is_stated):
    assert EndedFact("team", "2", "3", ENDS.date()).is_stated_in(text, START.date()) is is_stated
