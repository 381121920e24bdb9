"""Charts of tokens, cost and facts, each with a table."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone, translation

from memory import facts
from memory.models import Call, Fact
from memory.views.charts.facts_over_time import MAX_SUBJECTS, facts_over_time
from memory.views.charts.usage import MAX_SERIES, SUM_DAYS, usage_charts
from tests.html import compact
from tests.memory.conftest import AT

pytestmark = pytest.mark.django_db


def row(model: str, tokens: int, cost: str | None = None, days_ago: int = 0) -> dict:
    day = timezone.localdate() - timedelta(days=days_ago)
    paid = None if cost is None else Decimal(cost)
    return {"day": day, "model": model, "input_tokens": tokens, "output_tokens": 0, "cost": paid}


def test_a_bar_has_a_part_for_each_model_up_to_the_highest_day():
    [chart] = usage_charts([row("a", 30), row("b", 10), row("a", 20, days_ago=1)])
    assert chart.models == {0: "a", 1: "b"}
    assert (chart.total, chart.top, len(chart.days)) == ("60", "40", SUM_DAYS)
    yesterday, first, second = chart.bars
    assert (yesterday.height, first.height, second.height) == ("50.00", "75.00", "25.00")
    # The parts lie on each other, and end at the upper edge.
    assert (first.y, second.y) == ("25.00", "0.00")
    assert float(first.x) == float(second.x) > float(yesterday.x)
    assert chart.rows == [
        (chart.days[-1], ["30", "10"], "40"),
        (chart.days[-2], ["20", "0"], "20"),
    ]


def test_cost_is_a_chart_of_its_own_with_the_same_numbers_for_the_models():
    tokens, cost = usage_charts([row("free", 30), row("paid", 10, "0.25")])
    assert tokens.models == {0: "free", 1: "paid"}
    assert cost.models == {1: "paid"}
    assert cost.total == "$0.2500"


def test_further_models_are_one_part():
    [chart] = usage_charts([row(f"m{number}", 10 - number) for number in range(7)])
    assert list(chart.models.values()) == ["m0", "m1", "m2", "m3", "other models"]
    assert len(chart.models) == MAX_SERIES + 1
    assert chart.rows[0][1][-1] == str(6 + 5 + 4)


def test_digits_are_grouped_in_the_readers_language():
    [chart] = usage_charts([row("a", 1_234_567)])
    assert chart.total == "1,234,567"
    with translation.override("de"):
        assert chart.top == "1.234.567"


def test_without_calls_there_is_no_chart():
    assert usage_charts([]) == []
    assert usage_charts([row("a", 0)]) == []


@pytest.fixture
def calls(project) -> None:
    for model in ("m1", "m2"):
        Call.objects.create(
            project=project, kind="digest", model=model, input_tokens=90, cost=Decimal("0.01")
        )


def test_the_overview_shows_the_charts_of_its_project(client, owner, stranger, calls):
    client.force_login(owner)
    page = compact(client.get("/projects/billing/overview/").content.decode())
    assert page.count('<figure class="stacked-bars">') == 2
    assert "Tokens by day and model, last 30 days:<b>180</b>" in page
    assert "Cost by day and model, last 30 days:<b>$0.0200</b>" in page
    assert '<th scope="col">m1</th><th scope="col">m2</th>' in page
    assert " style=" not in page
    client.post("/", {"name": "Other"})
    assert "stacked-bars" not in client.get("/projects/other/overview/").content.decode()


def test_a_call_of_the_day_before_the_first_one_is_in_no_chart(client, owner, admin_client, calls):
    today = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    Call.objects.update(started_at=today - timedelta(days=SUM_DAYS - 1, seconds=1))
    client.force_login(owner)
    assert "stacked-bars" not in client.get("/projects/billing/overview/").content.decode()
    assert "stacked-bars" not in admin_client.get("/admin/chat/call/").content.decode()


def test_the_calls_page_of_the_admin_shows_all_projects(admin_client, calls):
    page = compact(admin_client.get("/admin/chat/call/").content.decode())
    assert page.count('<figure class="stacked-bars">') == 2
    assert "css/charts.css" in page


def statement(subject: str, object: str, at: datetime) -> facts.Statement:
    return facts.Statement(subject, "is owned by", object, at)


@pytest.fixture
def owned(project, owner) -> list[Fact]:
    member = project.memberships.get(user=owner)
    since = [AT, AT + timedelta(days=50)]
    return [
        facts.create_fact(member, statement("billing", team, at))[0]
        for team, at in zip(("the platform team", "the payments team"), since, strict=True)
    ]


def drawn(project):
    return facts_over_time(Fact.objects.filter(project=project).with_validity())


def test_a_subject_has_a_line_for_each_predicate_with_its_periods(project, owned):
    [subject] = drawn(project).subjects
    [(predicate, [first, second])] = subject.lines
    assert (subject.subject, predicate) == ("billing", "is owned by")
    assert first.until == second.fact.valid_from and second.until is None
    assert first.x == "0.00"
    assert float(first.x) + float(first.width) == pytest.approx(float(second.x), abs=0.02)
    assert float(second.x) + float(second.width) == pytest.approx(100, abs=0.02)


def test_the_text_of_a_long_bar_begins_in_the_newest_half(project, owned):
    [subject] = drawn(project).subjects
    [(_, [ended, current])] = subject.lines
    start = float(current.x) + float(current.width) * float(current.newest_x) / 100
    assert start == pytest.approx(50, abs=0.05)
    # The text of a bar of the oldest half begins with the bar.
    assert float(ended.x) + float(ended.width) < 50 and ended.newest_x == ""


def test_the_subjects_with_most_changes_are_drawn(project, owner, owned):
    member = project.memberships.get(user=owner)
    for number in range(MAX_SUBJECTS + 4):
        facts.create_fact(member, statement(f"subject {number:02}", "x", AT))
    timeline = drawn(project)
    assert timeline.subjects[0].subject == "billing"
    assert (len(timeline.subjects), timeline.more) == (MAX_SUBJECTS, 5)


def test_the_timeline_is_a_page_with_a_table(client, viewer, stranger, owned):
    client.force_login(viewer)
    page = compact(client.get("/projects/billing/memory/facts/?timeline").content.decode())
    assert 'aria-current="page" href="/projects/billing/memory/facts/?timeline"' in page
    assert "<td>the platform team</td><td>12 Mar 2026</td><td>1 May 2026</td>" in page
    assert "<td>the payments team</td><td>1 May 2026</td><td>–</td>" in page
    assert " style=" not in page
    client.force_login(stranger)
    assert client.get("/projects/billing/memory/facts/?timeline").status_code == 404


def test_without_facts_the_timeline_says_so(client, owner, project):
    client.force_login(owner)
    page = client.get("/projects/billing/memory/facts/?timeline").content.decode()
    assert "No facts yet." in page


def test_a_long_timeline_takes_no_more_queries(
    client, owner, project, owned, django_assert_max_num_queries
):
    member = project.memberships.get(user=owner)
    for number in range(20):
        facts.create_fact(member, statement(f"subject {number:02}", "x", AT))
    client.force_login(owner)
    client.get("/projects/billing/memory/facts/?timeline")
    with django_assert_max_num_queries(8):
        client.get("/projects/billing/memory/facts/?timeline")


def test_a_day_of_a_chart_is_one_of_the_projects_zone(client, owner, project):
    project.timezone = "Pacific/Kiritimati"
    project.save()
    call = Call.objects.create(project=project, kind="digest", model="m1", input_tokens=90)
    now = timezone.now().astimezone(UTC).replace(hour=12)
    Call.objects.filter(pk=call.pk).update(started_at=now - timedelta(days=2))
    client.force_login(owner)
    page = compact(client.get("/projects/billing/overview/").content.decode())
    day = (now - timedelta(days=1)).date()
    assert f'<th scope="row">{day.day} {day:%b} {day.year}</th><td>90</td>' in page
