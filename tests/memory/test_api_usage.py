"""/api/v1/projects/{slug}/usage/: what the writing of memories cost."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from memory.models import Call

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/billing/usage/"
SPAN = {"since": "2026-03-01T00:00Z", "until": "2026-03-31T00:00Z"}


@pytest.fixture
def call(project):
    def make(at: datetime | None = None, **fields) -> Call:
        usual = {"kind": "digest", "model": "openai-chat:a", "outcome": "answered"}
        numbers = {"input_tokens": 100, "output_tokens": 10, "duration_ms": 500}
        model_call = Call.objects.create(project=project, **usual | numbers | fields)
        if at is not None:
            Call.objects.filter(pk=model_call.pk).update(started_at=at)
        return model_call

    return make


def test_calls_are_summed_by_day_kind_and_model(api, owner, call):
    at = datetime(2026, 3, 12, 10, tzinfo=UTC)
    call(at, cost=Decimal("0.01"))
    call(at + timedelta(hours=2), cost=Decimal("0.02"))
    call(at, kind="conversation", outcome="It did not answer in time.")
    call(at + timedelta(days=1), model="openai-chat:b")
    payload = api(owner).get(URL, SPAN).json()
    assert [
        (row["day"], row["kind"], row["model"], row["calls"]) for row in payload["results"]
    ] == [
        ("2026-03-13", "digest", "openai-chat:b", 1),
        ("2026-03-12", "conversation", "openai-chat:a", 1),
        ("2026-03-12", "digest", "openai-chat:a", 2),
    ]
    assert payload["results"][2] == {
        "day": "2026-03-12",
        "kind": "digest",
        "model": "openai-chat:a",
        "calls": 2,
        "unanswered": 0,
        "input_tokens": 200,
        "cached_tokens": 0,
        "output_tokens": 20,
        "cost": "0.030000",
        "duration_ms": 1000,
    }
    assert payload["results"][1]["unanswered"] == 1
    assert payload["results"][0]["cost"] is None


def test_a_day_is_one_of_the_projects_zone(api, owner, project, call):
    project.timezone = "Pacific/Kiritimati"
    project.save()
    call(datetime(2026, 3, 12, 10, tzinfo=UTC))
    [row] = api(owner).get(URL, SPAN).json()["results"]
    assert row["day"] == "2026-03-13"


def test_the_end_is_not_part_of_the_span(api, owner, call):
    call(datetime(2026, 3, 1, tzinfo=UTC))
    call(datetime(2026, 3, 31, tzinfo=UTC))
    assert [row["day"] for row in api(owner).get(URL, SPAN).json()["results"]] == ["2026-03-01"]


def test_the_default_is_the_last_thirty_days(api, owner, call):
    now = datetime.now(UTC)
    call(now - timedelta(days=29))
    call(now - timedelta(days=31))
    assert len(api(owner).get(URL).json()["results"]) == 1


def test_todays_allowance(api, owner, project, call):
    call()
    details = api(owner).get(URL).json()["today"]
    assert (details["spent"], details["limit"], details["is_spent"]) == (110, None, False)
    project.memory_daily_tokens = 1_000
    project.save()
    call(input_tokens=900)
    details = api(owner).get(URL).json()["today"]
    assert (details["spent"], details["limit"], details["is_spent"]) == (1_020, 1_000, True)
    assert datetime.fromisoformat(details["resumes_at"]) > datetime.now(UTC)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"since": "spring"}, "since"),
        ({"until": "spring"}, "until"),
        ({"since": "2026-03-02T00:00Z", "until": "2026-03-01T00:00Z"}, "since"),
        ({"since": "2024-03-02T00:00Z", "until": "2026-03-01T00:00Z"}, "since"),
    ],
)
def test_a_span_that_makes_no_sense_is_a_400(api, owner, project, query, field):
    response = api(owner).get(URL, query)
    assert response.status_code == 400
    assert set(response.json()) == {field}


def test_the_span_begins_with_the_calendar_at_the_earliest(api, owner, project):
    response = api(owner).get(URL, {"until": "0001-01-01T00:00Z"})
    assert (response.status_code, response.json()["results"]) == (200, [])


def test_other_projects_are_not_counted_and_strangers_get_404(api, owner, stranger, project, call):
    from projects.services import create_project

    other = create_project(owner, name="Other")
    Call.objects.create(project=other, kind="digest", model="m", input_tokens=9)
    assert api(owner).get(URL).json()["results"] == []
    assert api(stranger).get(URL).status_code == 404


def test_the_calls_page_of_the_admin_sums_by_user_model_and_day(
    admin_client, project, owner, call, django_assert_num_queries
):
    call(
        kind="reply",
        user=owner,
        model="openai-chat:b",
        input_tokens=700,
        output_tokens=7,
        cost=Decimal("0.5"),
    )
    call()
    page = admin_client.get("/admin/chat/call/")
    tables = {
        str(title): [(row["name"], row["calls"], row["input_tokens"], row["cost"]) for row in rows]
        for title, rows in page.context["tables"]
    }
    assert tables["By user"] == [
        (owner.username, 1, 700, Decimal("0.5")),
        ("Strata (automatic)", 1, 100, None),
    ]
    assert [row[0] for row in tables["By model"]] == ["openai-chat:b", "openai-chat:a"]
    assert [row[1:3] for row in tables["By day"]] == [(2, 800)]
    assert "$0.5000" in page.content.decode()
    call(datetime(2026, 3, 12, 10, tzinfo=UTC))
    with django_assert_num_queries(11):
        page = admin_client.get("/admin/chat/call/")
    assert [row["calls"] for row in page.context["tables"][2][1]] == [2]


def test_replies_do_not_count_against_the_limit_of_summaries(api, owner, project, call):
    call(kind="reply", input_tokens=5_000)
    assert api(owner).get(URL).json()["today"]["spent"] == 0
