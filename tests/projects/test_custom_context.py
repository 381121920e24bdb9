"""The texts of a project that its instructions use, as `context.KEY`."""

import json

import pytest

from chat.models import Session

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/billing/"
SETTINGS = "/projects/billing/settings/"
TEMPLATE = "You write for {{ context.team }}."


def general(client, **fields: str):
    form = client.get(SETTINGS).context["setting_forms"]["general"]
    shown = {name: form[name].value() or "" for name in form.fields}
    initial = {f"initial-{name}": value for name, value in shown.items()}
    return client.post(SETTINGS, {"tab": "general", **initial, **shown, **fields})


def test_the_api_stores_pairs_and_the_prompt_has_them(project, owner, api):
    change = {"custom_context": {"team": "Platform"}, "instructions": TEMPLATE}
    answer = api(owner).patch(URL, change, format="json")
    assert answer.json()["custom_context"] == {"team": "Platform"}
    project.refresh_from_db()
    session = Session.objects.create(project=project, creator=owner)
    answer = api(owner).get(f"/api/v1/sessions/{session.pk}/prompt/")
    assert "You write for Platform." in answer.content.decode()


def test_instructions_with_an_unknown_key_are_refused(project, owner, api):
    client = api(owner)
    answer = client.patch(URL, {"instructions": TEMPLATE}, format="json")
    assert answer.status_code == 400
    assert "team" in answer.json()["instructions"][0]
    change = {"custom_context": {"team": "Platform"}, "instructions": TEMPLATE}
    assert client.patch(URL, change, format="json").status_code == 200
    # The key is in use.
    answer = client.patch(URL, {"custom_context": {}}, format="json")
    assert list(answer.json()) == ["instructions"]


@pytest.mark.parametrize(
    "pairs",
    [
        {"a b": "x"},
        {"1": "x"},
        {"k": "x" * 1_001},
        {"k" * 51: "x"},
        {"k": ["x"]},
        {"k": None},
        {"k": "a\0b"},
        {"k": "\ud800"},
        ["k"],
        "k",
        {f"key{number}": "x" for number in range(51)},
    ],
)
def test_wrong_pairs_are_refused(project, owner, api, pairs):
    body = json.dumps({"custom_context": pairs})
    answer = api(owner).patch(URL, body, content_type="application/json")
    assert answer.status_code == 400
    [[reason]] = answer.json().values()
    assert isinstance(reason, str)
    assert list(answer.json()) == ["custom_context"]


def test_an_owner_writes_a_line_for_each_pair(client, project, owner):
    client.force_login(owner)
    lines = "team = Platform\r\n\r\nmotto = a = b\r\n"
    assert general(client, custom_context=lines, instructions=TEMPLATE).status_code == 302
    project.refresh_from_db()
    assert project.custom_context == {"team": "Platform", "motto": "a = b"}
    page = client.get(SETTINGS).content.decode()
    assert "team = Platform\nmotto = a = b" in page
    # An old page that did not change them leaves them.
    assert general(client, name="Bills").status_code == 302
    project.refresh_from_db()
    assert project.custom_context == {"team": "Platform", "motto": "a = b"}


def test_texts_of_several_lines_survive_a_saved_form(client, project, owner):
    client.force_login(owner)
    separators = "".join(map(chr, range(0x2030)))
    separators = "".join(char for char in separators if len(f"a{char}a".splitlines()) == 2)
    context = {"rules": "Be brief.\nNo lists.\r\n", "path": "C:\\new\\u2028", "all": separators}
    project.custom_context = context
    project.save()
    assert general(client, name="Bills", instructions="Answer.").status_code == 302
    project.refresh_from_db()
    assert (project.name, project.custom_context) == ("Bills", context)
    lines = client.get(SETTINGS).context["setting_forms"]["general"]["custom_context"].value()
    assert "rules = Be brief.\\nNo lists.\\r\\n" in lines.splitlines()
    # Other backslashes stay as they are.
    assert general(client, custom_context=f"{lines}\nmotto = a\\d\\nb").status_code == 302
    project.refresh_from_db()
    assert project.custom_context == context | {"motto": "a\\d\nb"}


@pytest.mark.parametrize("lines", ["team", "a b = c", "= c"])
def test_a_line_that_is_no_pair_is_refused(client, project, owner, lines):
    client.force_login(owner)
    answer = general(client, custom_context=lines)
    assert answer.status_code == 400
    assert answer.context["setting_forms"]["general"].errors.keys() == {"custom_context"}


def test_the_page_refuses_an_unknown_key(client, project, owner):
    client.force_login(owner)
    answer = general(client, instructions=TEMPLATE)
    assert answer.context["setting_forms"]["general"].errors.keys() == {"instructions"}
