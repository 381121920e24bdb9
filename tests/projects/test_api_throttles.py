"""How often a token and a user may ask: 429 and when again, counted for all processes."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone
from rest_framework.test import APIClient

from chat.models import Session
from config.settings.api import LimitVariables
from config.settings.env import load
from projects import rate_limits, tasks
from projects.models import Bucket, Token
from projects.rate_limits import RateLimitExceededError, count_request

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/"


@pytest.fixture
def rates(settings):
    """Sets rates for this test; those that are not named are off."""

    def set_to(**options: tuple[int, int] | None) -> None:
        settings.RATES = dict.fromkeys(("reads", "writes", "replies")) | options

    return set_to


def rate_headers(answer) -> tuple[int, ...]:
    return tuple(
        int(answer.headers[f"RateLimit-{name}"]) for name in ("Limit", "Remaining", "Reset")
    )


def test_too_many_requests_get_429_with_retry_after(api, owner, project, rates):
    rates(reads=(3, 60))
    client = api(owner)
    limits = [rate_headers(client.get(URL)) for _ in range(3)]
    assert limits == [(3, 2, 20), (3, 1, 40), (3, 0, 60)]
    refused = client.get(URL)
    assert refused.status_code == 429
    assert list(refused.json()) == ["detail"]
    assert 1 <= int(refused.headers["Retry-After"]) <= 20
    assert rate_headers(refused)[:2] == (3, 0)


def test_it_comes_back_bit_by_bit(api, owner, rates):
    rates(reads=(4, 400))
    client = api(owner)
    assert [client.get(URL).status_code for _ in range(5)] == [200] * 4 + [429]
    # More than a minute and a half later.
    Bucket.objects.update(free_at=F("free_at") - timedelta(seconds=101))
    assert [client.get(URL).status_code for _ in range(2)] == [200, 429]


def test_refused_requests_are_not_counted(owner, rates):
    rates(reads=(1, 60))
    token, _ = Token.issue(owner)
    count_request(owner, token, ["reads"])
    before = set(Bucket.objects.values_list("subject", "free_at"))
    for _ in range(5):
        with pytest.raises(RateLimitExceededError):
            count_request(owner, token, ["reads"])
    assert set(Bucket.objects.values_list("subject", "free_at")) == before


def test_another_rate_counts_from_the_moment_it_is_set(owner, rates):
    token, _ = Token.issue(owner)
    rates(reads=(1, 86_400))
    count_request(owner, token, ["reads"])
    with pytest.raises(RateLimitExceededError) as exceeded:
        count_request(owner, token, ["reads"])
    assert exceeded.value.retry_after_s == 86_400
    rates(reads=(2, 60))
    assert count_request(owner, token, ["reads"]).remaining == 1
    assert count_request(owner, token, ["reads"]).remaining == 0
    with pytest.raises(RateLimitExceededError):
        count_request(owner, token, ["reads"])


def test_reading_and_writing_are_counted_apart(api, owner, rates):
    rates(reads=(1, 60), writes=(1, 60))
    client = api(owner)
    assert client.get(URL).status_code == 200
    assert client.post(URL, {"name": "Data"}, format="json").status_code == 201
    assert client.get(URL).status_code == 429
    assert client.post(URL, {"name": "Data"}, format="json").status_code == 429


@pytest.mark.django_db(transaction=True)
def test_replies_of_a_model_have_a_lower_rate(api, editor, project, rates, scripted):
    rates(writes=(100, 60), replies=(2, 60))
    session = Session.objects.create(project=project, creator=editor)
    client, url = api(editor), f"/api/v1/sessions/{session.pk}/messages/"
    response = client.post(url, {"content": "When?"}, format="json")
    assert rate_headers(response)[:2] == (2, 1)
    reply = response.json()["reply"]["id"]
    regenerate_url = f"/api/v1/messages/{reply}/regenerate/"
    assert client.post(regenerate_url, {}, format="json").status_code == 201
    for path, body in ((url, {"content": "When?"}), (regenerate_url, {})):
        assert client.post(path, body, format="json").status_code == 429
    recorded = client.post(url, {"content": "Said elsewhere.", "reply": False}, format="json")
    assert (recorded.status_code, rate_headers(recorded)[0]) == (201, 100)
    assert len(scripted.requests) == 2


@pytest.mark.parametrize("body", ["[]", "{", '"text"', "null", '{"content": "a", "reply": "no!"}'])
def test_a_wrong_body_still_gets_400(api, editor, project, rates, body):
    rates(writes=(100, 60), replies=(100, 60))
    session = Session.objects.create(project=project, creator=editor)
    url = f"/api/v1/sessions/{session.pk}/messages/"
    assert api(editor).post(url, body, content_type="application/json").status_code == 400


def test_openai_clients_get_errors_in_their_format(api, owner, project, rates):
    rates(writes=(10, 60), replies=(1, 60))
    client, url = api(owner), "/v1/chat/completions"
    assert client.post(url, {}, format="json").status_code == 400
    refused = client.post(url, {}, format="json")
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert int(refused.headers["Retry-After"]) <= 60
    assert rate_headers(refused)[:2] == (1, 0)


def test_another_token_has_a_rate_of_its_own_up_to_that_of_the_user(api, owner, rates):
    rates(reads=(2, 60))
    clients = [api(owner) for _ in range(4)]
    statuses = [client.get(URL).status_code for client in clients for _ in range(2)]
    assert statuses == [200] * 6 + [429] * 2
    assert rate_limits.TOKENS_PER_USER == 3


def test_another_user_is_not_kept_waiting(api, owner, stranger, rates):
    rates(reads=(1, 60))
    for user in (owner, stranger):
        client = api(user)
        assert [client.get(URL).status_code for _ in range(2)] == [200, 429]


def test_requests_without_a_token_are_not_counted(rates):
    rates(reads=(1, 60))
    assert [APIClient().get(URL).status_code for _ in range(3)] == [401] * 3
    assert [APIClient().get("/api/v1/schema/").status_code for _ in range(2)] == [200] * 2
    assert not Bucket.objects.exists()


def test_it_takes_one_query(api, owner, project, rates, django_assert_num_queries):
    rates(reads=(100, 60))
    client = api(owner)
    with django_assert_num_queries(3):
        client.get(URL)


@pytest.mark.django_db(transaction=True)
def test_many_at_once_get_through_exactly_as_often_as_allowed(owner, rates):
    rates(reads=(20, 3_600), writes=(30, 3_600))
    token, _ = Token.issue(owner)

    def ask(number: int) -> bool:
        try:
            count_request(owner, token, ["reads", "writes"] if number % 2 else ["writes", "reads"])
        except RateLimitExceededError:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(100))) == 20


def test_expired_rates_are_cleared(owner, rates):
    rates(reads=(5, 60))
    token, _ = Token.issue(owner)
    count_request(owner, token, ["reads"])
    tasks.clear()
    assert Bucket.objects.count() == 2
    Bucket.objects.update(free_at=timezone.now() - timedelta(seconds=1))
    tasks.clear()
    assert not Bucket.objects.exists()


def test_no_write_of_it_waits_for_the_disk():
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = 'projects_bucket'")
        assert cursor.fetchone() == ("u",)


def test_the_schema_tells_of_it(client):
    paths = client.get("/api/v1/schema/", headers={"Accept": "application/json"}).json()["paths"]
    for path in paths.values():
        for operation in path.values():
            assert "Retry-After" in operation["responses"]["429"]["headers"]


def test_the_rates_are_settings(monkeypatch):
    monkeypatch.setenv("STRATA_RATE_READS", "10/second")
    monkeypatch.setenv("STRATA_RATE_WRITES", "off")
    monkeypatch.setenv("STRATA_RATE_REPLIES", "")
    limits = load(LimitVariables)
    rates = (limits.rate_reads, limits.rate_writes, limits.rate_replies)
    assert rates == ((10, 1), None, (120, 60))


@pytest.mark.parametrize("value", ["10", "ten/minute", "0/minute", "-1/hour", "10/year", "/"])
def test_a_wrong_rate_stops_the_start_with_one_line(value, monkeypatch):
    monkeypatch.setenv("STRATA_RATE_READS", value)
    with pytest.raises(SystemExit) as stopped:
        load(LimitVariables)
    [line] = str(stopped.value).splitlines()
    assert line.startswith("strata: STRATA_RATE_READS takes a rate such as 60/minute")
