"""The admin opens on every model, shows no secret, and lets nobody tinker."""

import re
from html import unescape
from urllib.parse import urljoin

import pytest
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chat.conversations.messages import post_message
from chat.models import Message, ModelPrice, SavedPrompt, Seen, Session
from memory.models import (
    Block,
    Cursor,
    Delivery,
    Entry,
    EntryRevision,
    Fact,
    FactSource,
    Ladder,
    Webhook,
)
from projects.admin import filter_name
from projects.models import Invitation, Project, SpentInvitation, Token
from projects.services import create_project

pytestmark = pytest.mark.django_db

OURS = [
    model
    for app in ("projects", "chat", "memory")
    for model in apps.get_app_config(app).get_models()
]
ALL = list(admin.site._registry)


@pytest.fixture
def fill(owner):
    """Makes so many rows, or more, of every model of ours."""

    def make(count: int) -> None:
        for number in range(count):
            project = create_project(owner, name=f"House {number}")
            Token.objects.create(user=owner, name="robot", project=project)
            session = Session.objects.create(project=project, creator=owner)
            post_message(session, "The cutover is on 3 March. " * 9, author=owner)
            Seen.objects.create(project=project, session=session, user=owner, seq=1)
            Ladder.objects.create(project=project, failures=2)
            entry = Entry.objects.create(
                project=project,
                session=session,
                granularity="conversation",
                period_key="2026-03-03",
                zone="UTC",
                first_seq=1,
                last_seq=1,
                summary="It was decided.",
                tokens=9,
                message_count=1,
                first_source_at="2026-03-03T09:00Z",
                last_source_at="2026-03-03T09:10Z",
                written_by="scripted",
            )
            EntryRevision.objects.create(
                project=project,
                entry=entry,
                revision=1,
                summary="It may be decided.",
                written_by="scripted",
                written_at="2026-03-03T09:10Z",
            )
            fact = Fact.objects.create(
                project=project,
                subject="billing",
                predicate="is owned by",
                object="platform",
                valid_from="2026-03-03T09:00Z",
                written_by="scripted",
            )
            FactSource.objects.create(
                project=project,
                fact=fact,
                session=session,
                message=session.messages.get(),
                entry=entry,
                valid_from="2026-03-03T09:00Z",
                confidence=0.7,
            )
            hook = Webhook.objects.create(
                project=project, url="https://example.org/hook", events=["import.done"]
            )
            link, _secret = Invitation.issue(
                project, created_by=owner, expires_at="2026-03-10T09:00Z"
            )
            SpentInvitation.objects.create(project=project, invitation=link, user=owner)
            Delivery.objects.create(project=project, webhook=hook, event="import.done")
        Cursor.objects.update(failures=3, last_error="The model did not answer in time.")

    return make


@pytest.fixture
def house(fill) -> None:
    fill(1)


def page(model, name: str, *args) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


def test_every_model_of_ours_is_there():
    assert set(OURS) <= set(ALL)


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.__name__)
def test_it_opens_on_every_model(admin_client, house, model):
    assert admin_client.get(page(model, "changelist")).status_code == 200
    for row in model._default_manager.all()[:1]:
        assert admin_client.get(page(model, "change", row.pk)).status_code == 200


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_listing_takes_the_same_queries_for_many(
    admin_client, fill, model, django_assert_num_queries
):
    url = page(model, "changelist")
    fill(1)
    admin_client.get(url)
    with CaptureQueriesContext(connection) as few:
        admin_client.get(url)
    fill(6)
    with django_assert_num_queries(len(few)):
        admin_client.get(url)


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_it_searches_every_model_of_ours(admin_client, house, model):
    query = {"q": "0190163d-8694-739b-aea5-966c26f8ad91"}
    assert admin_client.get(page(model, "changelist"), query).status_code == 200


def lookups_of_columns(model) -> set[str]:
    """Returns lookups of all columns of `model` that are no keys and no filters of its page."""
    page = admin.site._registry[model]
    filters = {page.date_hierarchy, *map(filter_name, page.list_filter)}
    columns = [
        field.name
        for field in model._meta.concrete_fields
        if not field.is_relation and not field.primary_key and field.name not in filters
    ]
    related = [
        f"{field.name}__{column.name}"
        for field in model._meta.concrete_fields
        if field.is_relation
        for column in field.related_model._meta.concrete_fields
        if not (column.is_relation or column.primary_key or column == field.target_field)
    ]
    related = [name for name in related if name not in filters]
    return {f"{name}{how}" for name in [*columns, *related] for how in ("", "__startswith")}


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_a_query_string_filters_by_nothing_that_the_page_does_not_offer(rf, model, admin_user):
    request = rf.get("/")
    request.user = admin_user
    page = admin.site._registry[model]
    found = lookups_of_columns(model)
    assert [name for name in found if page.lookup_allowed(name, "a", request)] == []
    keys = ["pk", *(field.name for field in model._meta.concrete_fields if field.is_relation)]
    assert all(page.lookup_allowed(f"{name}__exact", "1", request) for name in keys)


@pytest.mark.parametrize(
    ("model", "lookup"),
    [
        (Message, "text__startswith"),
        (Message, "session__title__startswith"),
        (Block, "content__startswith"),
        (SavedPrompt, "text__startswith"),
        (Webhook, "url__startswith"),
        (Token, "digest__startswith"),
        (Authenticator, "data__secret__startswith"),
    ],
)
def test_hidden_text_cannot_be_guessed_with_a_query_string(staff, house, model, lookup):
    client = staff(f"view_{model._meta.model_name}")
    assert client.get(page(model, "changelist"), {lookup: "T"}).status_code == 400


def test_links_to_filtered_lists_work(admin_client, house):
    Entry.objects.update(state="proposed")
    pages = [reverse("admin:index"), *(page(model, "changelist") for model in (Entry, Session))]
    links = [f"{page(Message, 'changelist')}?session__id__exact={Session.objects.get().pk}"]
    for address in pages:
        text = admin_client.get(address).content.decode()
        links += [
            urljoin(address, unescape(link)) for link in re.findall(r'href="([^"]*[?][^"]*)"', text)
        ]
    assert len(links) > 20
    for link in links:
        assert admin_client.get(link).status_code == 200, link


def test_a_tokens_digest_is_no_column_and_no_field(admin_client, house):
    token = Token.objects.get()
    change = admin_client.get(page(Token, "change", token.pk))
    assert "digest" not in change.context["adminform"].form.fields
    assert ">" + token.digest not in change.content.decode()
    assert token.token_key not in change.content.decode()
    listed = admin_client.get(page(Token, "changelist")).content.decode()
    assert ">" + token.digest not in listed
    assert token.token_key not in listed


@pytest.mark.parametrize("scopes", ['[["read"]]', '{"read": 1}', '["owner"]'])
def test_unknown_permissions_of_a_token_are_refused(admin_client, house, scopes):
    path = page(Token, "change", Token.objects.get().pk)
    answer = admin_client.post(path, {"name": "robot", "scopes": scopes})
    assert "one or more of read" in answer.content.decode()


@pytest.mark.parametrize("name", ["input_price", "cached_price", "output_price"])
def test_a_negative_price_is_refused(admin_client, name):
    prices = {"model": "demo", "input_price": "1", "cached_price": "", "output_price": "0"}
    answer = admin_client.post(page(ModelPrice, "add"), prices | {name: "-1"})
    assert "greater than or equal to 0" in answer.content.decode()
    assert admin_client.post(page(ModelPrice, "add"), prices).status_code == 302


def test_tokens_are_not_made_in_the_admin(admin_client):
    assert admin_client.get(page(Token, "add")).status_code == 403


def test_fields_that_the_app_maintains_are_read_only(admin_client, house):
    for model in (Message, Cursor, Ladder, Entry, EntryRevision):
        row = model._default_manager.first()
        # Moderators change the text of a message only.
        status = 200 if model is Message else 403
        posted = admin_client.post(page(model, "change", row.pk), {"seq": 99, "role": "system"})
        assert posted.status_code == status
        assert admin_client.get(page(model, "delete", row.pk)).status_code == 403
    assert not Message.objects.filter(seq=99).exists()


def test_a_change_of_a_session_leaves_its_places(admin_client, house, owner):
    session = Session.objects.first()
    admin_client.get(page(Session, "change", session.pk))
    post_message(session, "Meanwhile.", author=owner)
    fields = {"title": "Renamed", "visibility": "private", "remembered": "on", "history_limit": ""}
    fields["status"] = "active"
    answer = admin_client.post(page(Session, "change", session.pk), fields | {"last_seq": 99})
    assert answer.status_code == 302
    fresh = Session.objects.get(pk=session.pk)
    assert (fresh.title, fresh.last_seq) == ("Renamed", 2)


def test_messages_are_listed_by_an_excerpt(admin_client, house):
    listed = admin_client.get(page(Message, "changelist")).content.decode()
    assert "The cutover is on 3 March. The cutover" in listed
    assert "The cutover is on 3 March. " * 4 not in listed


def test_failing_work_is_found_and_tried_again(admin_client, house):
    listed = admin_client.get(page(Cursor, "changelist"), {"failing": "yes"})
    assert "The model did not answer in time." in listed.content.decode()
    Cursor.objects.update(next_try_at="2030-01-01T00:00Z")
    picked = list(Cursor.objects.values_list("pk", flat=True))
    answer = admin_client.post(
        page(Cursor, "changelist"), {"action": "try_again", "_selected_action": picked}
    )
    assert answer.status_code == 302
    assert not Cursor.objects.exclude(next_try_at=None).exists()


def test_a_project_goes_with_all_it_holds(admin_client, house):
    project = Project.objects.get()
    confirmed = admin_client.post(page(Project, "delete", project.pk), {"post": "yes"})
    assert confirmed.status_code == 302
    assert not Project.objects.exists()
    assert not Message.objects.exists()


@pytest.fixture
def staff(client, person):
    """A client of staff with the permissions of these names."""

    def sign_in(*codenames: str):
        user = person("mona")
        user.is_staff = True
        user.save()
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        client.force_login(user)
        return client

    return sign_in


def act(client, model, action: str) -> str:
    picked = list(model.objects.values_list("pk", flat=True))
    form = {"action": action, "_selected_action": picked}
    return client.post(page(model, "changelist"), form, follow=True).content.decode()


def test_a_user_with_only_view_permission_cannot_retry(staff, house):
    Cursor.objects.update(next_try_at="2030-01-01T00:00Z")
    assert 'value="try_again"' not in act(staff("view_cursor"), Cursor, "try_again")
    assert Cursor.objects.exclude(next_try_at=None).exists()
