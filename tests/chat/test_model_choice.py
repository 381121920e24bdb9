"""Which model answers: the project's, the chat's, that of one answer, or the second model."""

import json
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat import providers
from chat.conversations import edits
from chat.conversations.lookups import Answer
from chat.conversations.messages import post_message
from chat.exporters import json as json_exporter
from chat.models import Message, ModelProvider, Session
from memory.models import Cursor
from projects.models import Project

pytestmark = pytest.mark.django_db(transaction=True)
OTHER = "openai-chat:other"


@pytest.fixture
def session(project, owner, scripted) -> Session:
    return Session.objects.create(project=project, creator=owner)


@pytest.fixture
def client(api, owner):
    return api(owner)


def ask(client, session, text="When is the cutover?") -> dict:
    answer = client.post(f"/api/v1/sessions/{session.pk}/messages/", {"content": text}, "json")
    assert answer.status_code == 201, answer.json()
    return answer.json()["reply"]


def change(client, session, **fields):
    return client.patch(f"/api/v1/sessions/{session.pk}/", fields, "json")


def models(scripted) -> list[object]:
    return [request["model"] for request in scripted.requests]


def receipt(client, reply: dict) -> dict:
    return client.get(f"/api/v1/messages/{reply['id']}/receipt/").json()


def export(session) -> dict:
    session.refresh_from_db()
    return json.loads("".join(json_exporter.render(session)))


def test_a_chat_has_its_own_model_and_settings(client, session, scripted):
    assert change(client, session, chat_model=OTHER, temperature=0.2).status_code == 200
    reply = ask(client, session)
    assert (reply["model"], models(scripted)) == (OTHER, ["other"])
    assert scripted.requests[0]["temperature"] == 0.2
    assert receipt(client, reply)["model"] == OTHER
    change(client, session, chat_model="", temperature=None)
    assert ask(client, session)["model"] == "openai-chat:scripted"
    assert "temperature" not in scripted.requests[1]


def test_the_effort_reaches_models_that_reason(client, session, scripted):
    change(client, session, chat_model="openai-chat:gpt-5-mini", reasoning_effort="low")
    ask(client, session)
    change(client, session, chat_model=OTHER)
    ask(client, session)
    assert [it.get("reasoning_effort") for it in scripted.requests] == ["low", None]


def test_one_answer_has_another_model_and_the_history_shows_both(client, session, scripted):
    first = ask(client, session)
    answer = client.post(f"/api/v1/messages/{first['id']}/regenerate/", {"model": OTHER}, "json")
    second = answer.json()["reply"]
    assert (first["model"], second["model"]) == ("openai-chat:scripted", OTHER)
    third = ask(client, session, "And then?")
    assert third["model"] == "openai-chat:scripted"
    assert models(scripted) == ["scripted", "other", "scripted"]
    assert [receipt(client, it)["model"] for it in (first, second, third)] == [
        "openai-chat:scripted",
        OTHER,
        "openai-chat:scripted",
    ]
    exported = export(session)
    assert [it["model"] for it in exported["messages"] if it["role"] == "assistant"] == [
        it["model"] for it in (first, second, third)
    ]


def test_unknown_models_are_refused(client, session, project):
    ModelProvider.objects.create(
        name="lab",
        kind="compatible",
        encrypted_key="x",
        catalogue=[{"name": "big-5-20260101"}, {"name": "small:latest"}],
    )
    for name, reason in (
        ("nobody:x", "no provider"),
        ("lab:tiny", "no model"),
        ("lab:big", "no model"),
    ):
        assert reason in change(client, session, chat_model=name).json()["chat_model"][0]
        for field in ("chat_model", "system_model", "fallback_model"):
            answer = client.patch(f"/api/v1/projects/{project.slug}/", {field: name}, "json")
            assert (answer.status_code, [*answer.json()]) == (400, [field])
    # Names without their version, as providers accept.
    for name in ("lab:big-5", "lab:small"):
        assert change(client, session, chat_model=name).status_code == 200


def test_models_that_administrators_do_not_allow_are_refused(
    client, session, project, scripted, api, owner
):
    first = ask(client, session)
    Project.objects.update(allowed_models=[OTHER])
    again = f"/api/v1/messages/{first['id']}/regenerate/"
    for refused in (
        client.post(again, {"model": "openai-chat:scripted"}, "json"),
        change(client, session, chat_model="demo"),
        client.patch(f"/api/v1/projects/{project.slug}/", {"chat_model": "demo"}, "json"),
    ):
        assert "may not use this model" in str(refused.json())
        assert refused.status_code == 400
    # The project's own model, from before.
    reply = ask(client, session)
    assert (reply["status"], reply["error"]) == ("failed", providers.NOT_ALLOWED)
    openai = client.post(
        "/v1/chat/completions",
        {"model": project.slug, "messages": [{"role": "user", "content": "Hello"}]},
        "json",
    )
    assert (openai.status_code, openai.json()["error"]["code"]) == (400, "model_not_allowed")
    assert models(scripted) == ["scripted"]
    assert client.post(again, {"model": OTHER}, "json").json()["reply"]["model"] == OTHER


@pytest.fixture
def second(project) -> Project:
    project.fallback_model = OTHER
    project.save()
    return project


@pytest.mark.parametrize("status", [402, 404, 429, 500, 503])
def test_the_second_model_answers_when_the_first_cannot(client, session, scripted, second, status):
    scripted.status(status)
    scripted.say("In May.")
    reply = ask(client, session)
    assert (reply["content"], reply["model"], reply["status"]) == ("In May.", OTHER, "complete")
    assert models(scripted) == ["scripted", "other"]
    fallback = receipt(client, reply)["fallback"]
    assert fallback["model"] == "openai-chat:scripted"
    assert fallback["reason"]
    assert fallback["reason"] in reply["error"]
    # The next answer tries the first model again.
    assert ask(client, session)["model"] == "openai-chat:scripted"


def test_the_receipt_names_the_version_that_the_second_model_read(
    client, session, scripted, second, owner, monkeypatch
):
    switch = Answer._switch

    def edit_and_switch(self, error) -> None:
        edits.edit(Message.objects.get(role="user"), "When is the long cutover?", owner)
        switch(self, error)

    monkeypatch.setattr(Answer, "_switch", edit_and_switch)
    scripted.status(503)
    sections = receipt(client, ask(client, session))["sections"]
    edited = Message.objects.get(role="user")
    [item] = [it for section in sections for it in section["items"] if it["id"] == str(edited.pk)]
    assert (item["revision"], item["tokens"]) == (edited.version, edited.tokens)
    assert "long" in str(scripted.requests[-1])


def test_the_page_shows_which_model_answered_and_why(client, session, scripted, second, owner, api):
    scripted.status(500)
    scripted.say("In May, or", finish="length")
    ask(client, session)
    browser = Client()
    browser.force_login(owner)
    page = browser.get(f"/projects/billing/chats/{session.pk}/").content.decode()
    assert OTHER in page
    assert " ".join(page.split()).count("openai-chat:scripted did not answer") == 1
    assert "The reply reached its maximum length." in page


def test_nothing_is_sent_twice_after_the_first_word_or_with_a_wrong_key(
    client, session, scripted, second
):
    scripted.half("In ")
    scripted.status(401)
    for _ in range(2):
        assert ask(client, session)["status"] == "failed"
    assert models(scripted) == ["scripted", "scripted"]


def test_both_models_fail(client, session, scripted, second):
    scripted.status(500)
    scripted.status(429)
    reply = ask(client, session)
    assert (reply["status"], reply["model"]) == ("failed", OTHER)
    assert "limiting requests" in reply["error"]


def test_a_second_model_that_is_not_allowed_does_not_answer(client, session, scripted, second):
    Project.objects.update(allowed_models=["openai-chat:scripted"])
    scripted.status(500)
    reply = ask(client, session)
    # The reason is that of the first model, which may be used.
    expected = ("failed", "The provider returned an error. Try again.")
    assert (reply["status"], reply["error"]) == expected
    assert models(scripted) == ["scripted"]


@pytest.mark.parametrize(
    "option",
    [
        {"stop": ["\ud800"]},
        {"tools": [{"type": "function", "function": {"name": "\ud800"}}]},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a\ud800"}}},
    ],
)
def test_options_with_an_unpaired_surrogate_are_rejected(client, project, scripted, option):
    body = {"model": "billing", "messages": [{"role": "user", "content": "Hello"}]} | option
    answer = client.post("/v1/chat/completions", json.dumps(body), content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == next(iter(option))
    assert scripted.requests == []


def test_requests_that_are_not_stored_have_the_second_model_too(client, session, scripted, second):
    scripted.status(503)
    scripted.say("In May.")
    answer = client.post(
        "/v1/chat/completions",
        {"model": "billing", "messages": [{"role": "user", "content": "Hello"}]},
        "json",
    )
    assert answer.json()["choices"][0]["message"]["content"] == "In May."
    assert models(scripted) == ["scripted", "other"]


def test_a_model_that_disappears_leaves_its_replies_as_they_are(client, session, scripted):
    change(client, session, chat_model=OTHER)
    first = ask(client, session)
    scripted.status(404)
    failed = ask(client, session)
    assert failed["status"] == "failed"
    assert "Choose another model" in failed["error"]
    change(client, session, chat_model="")
    assert ask(client, session)["status"] == "complete"
    assert receipt(client, first)["model"] == Message.objects.get(pk=first["id"]).model == OTHER


def test_the_page_of_a_chat_whose_model_has_disappeared(client, session, scripted, owner, second):
    """The provider no longer lists the model, and answers 404 for it."""
    lab = ModelProvider.objects.create(
        name="openai-chat", kind="openai-chat", encrypted_key="x", catalogue=[{"name": "first"}]
    )
    change(client, session, chat_model="openai-chat:first")
    first = ask(client, session, "Before?")
    lab.catalogue = [{"name": "scripted"}, {"name": "other"}]
    lab.save()
    scripted.status(404)
    scripted.say("From the second model.")
    after = ask(client, session, "After?")
    assert (after["model"], after["status"]) == (OTHER, "complete")
    fallback = receipt(client, after)["fallback"]
    assert fallback["model"] == "openai-chat:first"
    assert "has no model with this name" in fallback["reason"]
    assert [receipt(client, it)["model"] for it in (first, after)] == ["openai-chat:first", OTHER]
    replies = [it for it in export(session)["messages"] if it["role"] == "assistant"]
    assert [it["model"] for it in replies] == ["openai-chat:first", OTHER]
    browser = Client()
    browser.force_login(owner)
    page = " ".join(browser.get(f"/projects/billing/chats/{session.pk}/").content.decode().split())
    assert "From the second model." in page and OTHER in page
    assert "openai-chat:first did not answer: The provider has no model with this name." in page
    # The chat keeps the model until another is chosen. It can no longer be chosen elsewhere.
    url = reverse("session-model", args=["billing", session.pk])
    assert '<option value="openai-chat:first" selected>' in browser.get(url).content.decode()
    assert browser.post(url, {"chat_model": OTHER}).status_code == 302
    assert "openai-chat:first" not in browser.get(url).content.decode()
    assert change(client, session, chat_model="openai-chat:first").status_code == 400
    again = f"/api/v1/messages/{first['id']}/regenerate/"
    assert client.post(again, {"model": "openai-chat:first"}, "json").status_code == 400
    assert client.post(again, {}, "json").json()["reply"]["model"] == OTHER


def test_a_fork_and_an_import_keep_the_choice(client, session, scripted, owner, project):
    change(client, session, chat_model=OTHER, temperature=1, reasoning_effort="high")
    message = post_message(session, "Hello", author=owner)
    fork = client.post(f"/api/v1/sessions/{session.pk}/fork/", {"message": message.pk}, "json")
    assert fork.json()["chat_model"] == OTHER
    exported = export(session)
    chosen = {name: exported["session"][name] for name in ("chat_model", "temperature")}
    assert chosen == {"chat_model": OTHER, "temperature": 1.0}


def test_a_model_that_is_not_allowed_writes_no_summaries(session, project, owner, scripted):
    post_message(session, "The cutover is on 3 March.", author=owner)
    Project.objects.update(allowed_models=[OTHER])
    call_command("memory_cycle", project=project.slug, now=timezone.now() + timedelta(hours=1))
    assert models(scripted) == []
    assert Cursor.objects.get(session=session).last_error == providers.NOT_ALLOWED


@pytest.fixture
def visitor(owner):
    signed_in = Client()
    signed_in.force_login(owner)
    return signed_in


def test_the_page_of_a_chats_model_offers_what_the_model_has(visitor, session):
    ModelProvider.objects.create(
        name="lab",
        kind="compatible",
        encrypted_key="x",
        catalogue=[{"name": "plain", "reasoning": False}, {"name": "deep", "temperature": False}],
    )
    url = reverse("session-model", args=["billing", session.pk])
    for name, fields in (
        ("lab:plain", {"chat_model", "temperature"}),
        ("lab:deep", {"chat_model", "reasoning_effort"}),
    ):
        assert visitor.post(url, {"chat_model": name}).status_code == 302
        assert {*visitor.get(url).context["form"].fields} == fields
    page = visitor.post(f"{url}?part=drawer", {"chat_model": "", "temperature": "0.3"})
    assert "Saved." in page.content.decode()
    session.refresh_from_db()
    assert session.chat_model == ""
    assert visitor.post(url, {"chat_model": "lab:unknown"}).status_code == 400
    assert visitor.post(url, {"chat_model": "", "temperature": "3"}).status_code == 400


@pytest.fixture
def lab(db) -> list[str]:
    """More models than a select shows without a search field; their names."""
    names = ["plain", "deep", *(f"model-{number}" for number in range(20))]
    extra = {"plain": {"reasoning": False}, "deep": {"temperature": False}}
    items = [{"name": name} | extra.get(name, {}) for name in names]
    ModelProvider.objects.create(name="lab", kind="compatible", encrypted_key="x", catalogue=items)
    return [f"lab:{name}" for name in names]


@pytest.mark.parametrize(
    ("before", "name", "fields", "after"),
    [
        ("lab:plain", "lab:deep", {"temperature": 0.3}, {"temperature": None}),
        ("lab:deep", "lab:plain", {"reasoning_effort": "high"}, {"reasoning_effort": ""}),
    ],
)
def test_another_model_does_not_get_settings_that_it_does_not_have(
    visitor, session, lab, before, name, fields, after
):
    Session.objects.filter(pk=session.pk).update(chat_model=before, **fields)
    url = reverse("session-model", args=["billing", session.pk])
    assert visitor.post(url, {"chat_model": name} | fields).status_code == 302
    assert Session.objects.values("chat_model", *after).get() == {"chat_model": name} | after


def test_a_new_chat_begins_with_the_chosen_model(visitor, project, lab, scripted):
    page = visitor.get("/projects/billing/").content.decode()
    assert all(f'value="{name}"' in page for name in lab)
    assert "data-option-search" in page
    url = reverse("session-new", args=["billing"])
    choice = {"content": "Good morning", "temperature": "0.3", "reasoning_effort": "high"}
    for name, settings in (
        ("lab:plain", (0.3, "")),
        ("lab:deep", (None, "high")),
        ("lab:model-7", (0.3, "high")),
        ("", (0.3, "high")),
    ):
        assert visitor.post(url, choice | {"chat_model": name}).status_code == 302
        chat = Session.objects.latest("created_at")
        assert (chat.chat_model, (chat.temperature, chat.reasoning_effort)) == (name, settings)


def test_a_new_chat_with_an_unknown_model_is_refused(visitor, project, lab, scripted):
    url = reverse("session-new", args=["billing"])
    response = visitor.post(url, {"content": "Good morning", "chat_model": "lab:unknown"})
    assert response.status_code == 400
    page = response.content.decode()
    assert "Good morning" in page and 'id="id_chat_model_error"' in page
    assert not Session.objects.exists()


def test_a_reply_is_regenerated_with_a_chosen_model(visitor, client, session, scripted):
    first = ask(client, session)
    url = reverse("message-regenerate", args=[first["id"]])
    assert "Chat: openai-chat:scripted" in visitor.get(f"{url}?part=turn").content.decode()
    visitor.post(url, {"model": OTHER})
    latest = Message.objects.filter(role="assistant").latest("seq")
    assert (latest.model, str(latest.parent_id)) == (OTHER, first["parent"])
    refused = visitor.post(url, {"model": "nobody:x"}, headers={"accept": "text/event-stream"})
    assert (refused.status_code, "no provider" in refused.json()["detail"]) == (409, True)


def test_a_page_of_a_chat_calls_no_provider_and_reads_no_list(
    visitor, session, django_assert_max_num_queries, monkeypatch
):
    for number in range(5):
        items = [{"name": f"model-{item}"} for item in range(200)]
        ModelProvider.objects.create(
            name=f"p{number}", kind="compatible", encrypted_key="x", catalogue=items
        )
    monkeypatch.setattr("chat.providers.discovery._ask_ollama", lambda *_: pytest.fail("asked"))
    page = visitor.get(f"/projects/billing/chats/{session.pk}/").content.decode()
    assert "model-1" not in page
    with django_assert_max_num_queries(16):
        assert (
            "model-1"
            in visitor.get(f"/projects/billing/chats/{session.pk}/model/").content.decode()
        )
