"""Pages, CSV and API of costs agree with each other and with what the model's server counted."""

import csv
import io
from decimal import Decimal

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.conversations import generation
from chat.conversations.messages import ask
from chat.conversations.titles import write_title
from chat.models import Call, ModelPrice, Session
from chat.providers.booking import Payer
from memory.api.costs import ProjectLimitSerializer
from memory.views.charts.costs import LimitForm
from projects.models import Membership, SpendingLimit
from tests.html import compact
from tests.scripted import Answer

PAGE, API = "/projects/billing/costs/", "/api/v1/projects/billing/usage/"
LIMITS = "/api/v1/projects/billing/limits/"
SET_MEANWHILE = {
    "page": "memory.views.charts.costs.LimitForm.is_valid",
    "api": "memory.api.costs.ProjectLimitSerializer.is_valid",
}
# As a server with hundreds of users has in a year.
MANY = 50_001


def csv_rows(response) -> list[dict[str, str]]:
    async def read() -> bytes:
        return b"".join([part async for part in response.streaming_content])

    return list(csv.DictReader(io.StringIO(async_to_sync(read)().decode())))


def sums(rows) -> tuple[int, int, int]:
    names = ("input_tokens", "cached_tokens", "output_tokens")
    return tuple(sum(int(row[name]) for row in rows) for name in names)


@pytest.fixture
def call(project):
    def make(**fields) -> Call:
        usual = {"kind": "reply", "model": "openai-chat:a", "outcome": "answered"}
        numbers = {"input_tokens": 1_000, "output_tokens": 10, "cached_tokens": 250}
        return Call.objects.create(project=project, **usual | numbers | fields)

    return make


async def _events(reply, payer):
    return [event async for event in generation.stream_reply(reply, payer=payer)]


@pytest.mark.django_db(transaction=True)
def test_page_csv_and_api_agree_with_the_models_own_count_to_the_token(
    client, api, owner, project, scripted
):
    ModelPrice.objects.create(model="openai-chat:scripted", input_price=3, output_price=15)
    session = Session.objects.create(project=project, creator=owner)
    scripted.queue(Answer("One two three.", cached=3))
    scripted.call(("1", "search_memories", '{"query": "x"}'))
    for text in ("Count.", "Look it up.", "Go on."):
        _message, reply = ask(session, text, owner)
        async_to_sync(_events)(reply, Payer(owner.pk))
    Session.objects.filter(pk=session.pk).update(title_by_hand=False)
    write_title(session.pk)
    body = {"model": "billing", "messages": [{"role": "user", "content": "Hello"}]}
    api(owner).post("/v1/chat/completions", body, format="json")
    assert len(scripted.requests) == 6 == Call.objects.count()
    client.force_login(owner)
    page = client.get(PAGE)
    total = page.context["total"]
    counted = scripted.counted
    assert (total["input_tokens"], total["cached_tokens"], total["output_tokens"]) == counted
    assert sums(csv_rows(client.get(PAGE + "?format=csv"))) == counted
    for query in ({}, {"by": "day,user"}, {"by": "token"}, {"by": "project"}):
        rows = api(owner).get(API, query).json()["results"]
        assert sums(rows) == counted
        cost = sum(Decimal(row["cost"]) for row in rows)
        assert cost == (counted[0] * 3 + counted[2] * 15) / Decimal(1_000_000) == total["cost"]
    # Everything is the owner's, the title of their chat included.
    assert sums(api(owner).get("/api/v1/usage/").json()["results"]) == counted
    assert client.get("/costs/").context["total"]["input_tokens"] == counted[0]


@pytest.mark.django_db
def test_owners_see_users_and_others_do_not(client, owner, editor, call):
    call(user=editor)
    client.force_login(owner)
    page = client.get(PAGE).content.decode()
    assert "edgar" in page and "By user" in page
    assert csv_rows(client.get(PAGE + "?format=csv"))[0]["user"] == "edgar"
    client.force_login(editor)
    page = client.get(PAGE).content.decode()
    assert "By user" not in page and "openai-chat:a" in page
    assert "user" not in csv_rows(client.get(PAGE + "?format=csv"))[0]


@pytest.mark.django_db
def test_only_owners_group_by_user_over_the_api(api, owner, editor, call):
    call(user=editor)
    for keys in ("user", "token", "user\t", "day,\tuser", "\n token", "kind ,user\u00a0"):
        assert api(editor).get(API, {"by": keys}).status_code == 403, keys
    assert api(editor).get(API, {"by": "day,kind\t"}).status_code == 200
    [row] = api(owner).get(API, {"by": "user"}).json()["results"]
    assert (row["user"], row["input_tokens"]) == ("edgar", 1_000)
    assert api(owner).get(API, {"by": "password"}).status_code == 400


@pytest.mark.django_db
def test_a_user_sees_only_their_own_costs(client, api, owner, editor, call):
    call(user=editor, input_tokens=5)
    call(user=owner, input_tokens=7)
    client.force_login(editor)
    page = client.get("/costs/")
    assert page.context["total"]["input_tokens"] == 5
    assert "By user" not in page.content.decode()
    assert sums(api(editor).get("/api/v1/usage/").json()["results"])[0] == 5
    assert client.get("/costs/server/").status_code == 404


@pytest.mark.django_db
def test_the_server_shows_its_administrators_everything(admin_client, owner, call):
    call(user=owner)
    call(kind="digest")
    page = compact(admin_client.get("/costs/server/").content.decode())
    assert "olive" in page and "Strata (automatic)" in page and "billing" in page
    for place in ("chat/modelprice", "projects/spendinglimit"):
        assert admin_client.get(f"/admin/{place}/").status_code == 200
        assert f'href="/admin/{place}/"' in page
        assert f"/admin/{place}/" not in admin_client.get("/costs/").content.decode()
    rows = csv_rows(admin_client.get("/costs/server/?format=csv"))
    assert sums(rows) == (2_000, 500, 20)


@pytest.mark.django_db
def test_cache_hits_and_limits_are_shown(client, owner, project, call):
    call()
    SpendingLimit.objects.create(project=project, tokens_per_day=1_100)
    client.force_login(owner)
    page = compact(client.get(PAGE).content.decode())
    assert "250 tokens in (25 %) came from the provider’s cache." in page
    assert "Limit of this project: 1,100 tokens a day" in page and "91 % used" in page
    assert "Nearly used up" in page


@pytest.mark.django_db
def test_owners_set_the_limit_of_their_project(client, api, owner, editor, project, call):
    client.force_login(owner)
    assert client.post(PAGE, {"tokens_per_day": "500"}).status_code == 302
    assert client.post(PAGE, {"tokens_per_day": "-5"}).status_code == 400
    [budget] = api(editor).get(LIMITS).json()
    assert (budget["subject"], budget["period"]) == ("project", "day")
    assert Decimal(budget["maximum"]) == 500
    body = {"tokens_per_day": None, "dollars_per_month": "2.50"}
    assert api(editor).put(LIMITS, body, format="json").status_code == 404
    assert api(owner).put(LIMITS, body, format="json").status_code == 200
    misspelled = api(owner).put(LIMITS, {"token_per_day": 5}, format="json")
    assert misspelled.status_code == 400 and "token_per_day" in misspelled.json()
    [budget] = api(owner).get(LIMITS).json()
    assert (budget["unit"], Decimal(budget["maximum"])) == ("dollars", Decimal("2.5"))
    client.force_login(editor)
    assert client.post(PAGE, {"tokens_per_day": "5"}).status_code == 404


@pytest.mark.django_db
def test_no_cell_of_a_csv_is_a_formula(client, owner, project, call):
    call(model="=HYPERLINK(1)")
    client.force_login(owner)
    assert csv_rows(client.get(PAGE + "?format=csv"))[0]["model"] == "'=HYPERLINK(1)"


@pytest.mark.django_db
def test_a_csv_contains_all_groups_and_a_table_says_that_it_does_not(client, owner, call):
    names = [field.column for field in Call._meta.concrete_fields]
    new = {"id": "gen_random_uuid()", "model": "'demo:' || number"}
    values = ", ".join(new.get(name, name) for name in names)
    call()
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO memory_call ({', '.join(names)})"
            f" SELECT {values} FROM memory_call, generate_series(2, {MANY}) number"
        )
    client.force_login(owner)
    assert len(csv_rows(client.get(PAGE + "?format=csv"))) == MANY
    assert "These are the 50 with the most tokens in." in compact(client.get(PAGE).content.decode())


@pytest.mark.django_db
def test_more_calls_take_no_more_queries(client, owner, project, person, call):
    client.force_login(owner)
    call(user=owner)

    def queries() -> int:
        client.get(PAGE)
        with CaptureQueriesContext(connection) as captured:
            client.get(PAGE)
        return len(captured)

    before = queries()
    for number in range(30):
        user = person(f"user{number}")
        Membership.objects.create(project=project, user=user, role="editor")
        call(user=user, model=f"m{number}")
    assert queries() == before <= 14


@pytest.mark.parametrize("surface", SET_MEANWHILE)
def test_two_first_limits_at_the_same_moment_are_one(
    client, api, owner, project, monkeypatch, surface
):
    def is_valid(form, **_) -> bool:
        SpendingLimit.objects.create(project=project, tokens_per_day=7)
        return original(form, **_)

    original = {"page": LimitForm.is_valid, "api": ProjectLimitSerializer.is_valid}[surface]
    monkeypatch.setattr(SET_MEANWHILE[surface], is_valid)
    client.force_login(owner)
    amounts = {"tokens_per_day": "5"}
    response = (
        client.post(PAGE, amounts)
        if surface == "page"
        else api(owner).put(LIMITS, amounts, format="json")
    )
    assert response.status_code in (200, 302)
    assert SpendingLimit.objects.get(project=project).tokens_per_day == 5
