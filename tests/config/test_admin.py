"""All admin pages comply with the content security policy, and speak the reader's language."""

import re
from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets, help_text_for_field, label_for_field
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.functional import Promise
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from config.models import CrashedTask

pytestmark = pytest.mark.django_db

OURS = {
    model: page
    for model, page in admin.site._registry.items()
    if model._meta.app_label in ("projects", "chat", "memory", "config")
}


@pytest.fixture
def crontab():
    return CrontabSchedule.objects.create(minute="5")


@pytest.fixture
def tasks(crontab):
    every = IntervalSchedule.objects.create(every=1, period="minutes")
    return [
        PeriodicTask.objects.create(name="By clock", task="tidy", crontab=crontab),
        PeriodicTask.objects.create(name="Again and again", task="tidy", interval=every),
    ]


@pytest.fixture
def crashed():
    return CrashedTask.objects.create(key="k", task="t", last_crash_at=timezone.now())


def disobedient(response) -> list[str]:
    """The scripts, styles and handlers that a browser would refuse."""
    text = response.content.decode()
    nonce = response["Content-Security-Policy"].partition("'nonce-")[2].partition("'")[0]
    allowed = ("src=", 'type="application/json"', f'nonce="{nonce or "?"}"')
    elements = re.findall(r"<(?:script|style)\b[^>]*>", text)
    handlers = re.findall(r"<[^>]*\s(?:on[a-z]+|style)=[^>]*>", text)
    return [
        element for element in elements if not any(way in element for way in allowed)
    ] + handlers


def test_logging_out_of_the_admin_without_a_session_leads_to_its_start_page(client, admin_client):
    assert client.post("/admin/logout/")["Location"] == "/admin/"
    assert admin_client.post("/admin/logout/").status_code in (200, 302)
    assert admin_client.get("/admin/").status_code == 302


def test_no_form_of_the_admin_disobeys_the_policy(admin_client, tasks):
    pages = [reverse("admin:django_celery_beat_periodictask_change", args=[t.pk]) for t in tasks]
    pages += [reverse("admin:index")]
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        pages += [reverse(f"{name}_changelist"), reverse(f"{name}_add")]
    answers = {path: admin_client.get(path) for path in pages}
    opened_pages = {path: answer for path, answer in answers.items() if answer.status_code == 200}
    assert len(opened_pages) > len(pages) / 2
    assert {path: disobedient(answer) for path, answer in opened_pages.items()} == dict.fromkeys(
        opened_pages, []
    )


def test_a_periodic_task_says_what_its_crontab_means(admin_client, crontab, tasks):
    path = reverse("admin:django_celery_beat_periodictask_change", args=[tasks[0].pk])
    text = admin_client.get(path).content.decode()
    assert f'"{crontab.pk}": "{crontab.human_readable}"' in text


def test_columns_and_fields_have_names_that_can_be_translated():
    english = []
    for model, model_admin in OURS.items():
        fields = model_admin.fields or [f.name for f in model._meta.fields if f.editable]
        shown = {*model_admin.list_display, *fields} - {"__str__", "id"}
        names = {name: label_for_field(name, model, model_admin) for name in shown}
        english += [f"{model}: {n}" for n, label in names.items() if not isinstance(label, Promise)]
    assert len(OURS) > 40
    assert not english


def test_a_german_reads_german_columns(admin_client, crashed):
    page = reverse("admin:config_crashedtask_changelist")
    text = admin_client.get(page, headers={"accept-language": "de"}).content.decode()
    columns = re.findall(r'<div class="text">.*?>([^<]+)</', text)
    assert columns[-3:] == ["Abstürze", "Letzter Absturz", "Pausiert seit"]
    assert "Abgestürzte Aufgaben" in text


def helps_of(page, request, row) -> Iterator[tuple[str, object]]:
    """The help texts of one form, and the descriptions of its groups of fields."""
    if isinstance(page, admin.ModelAdmin):
        form = page.get_form(request, row, change=row is not None)
    else:
        form = page.get_formset(request, row).form
    groups = page.get_fieldsets(request, row)
    for name in flatten_fieldsets(groups):
        field = form.base_fields.get(name)
        help_text = field.help_text if field else help_text_for_field(name, page.model)
        yield f"{page.model.__name__}.{name}", help_text
    for title, options in groups:
        yield f"{page.model.__name__} {title}", options.get("description", "")


def shown_helps(request) -> dict[str, str]:
    """The texts that explain forms and actions of ours, in the present language."""
    texts: dict[str, str] = {}
    for model, page in OURS.items():
        # To change and to add.
        rows = [model(), None] if page.has_add_permission(request) else [model()]
        for row in rows:
            for shown in (page, *page.get_inline_instances(request, row)):
                texts |= {name: str(text) for name, text in helps_of(shown, request, row) if text}
        for _run, name, label in page.get_actions(request).values():
            texts[f"{model.__name__}:{name}"] = str(label)
    return texts


def test_a_german_reads_german_help_texts(rf, admin_user):
    request = rf.get("/")
    request.user = admin_user
    with translation.override("en"):
        in_english = shown_helps(request)
    with translation.override("de"):
        in_german = shown_helps(request)
    assert len(in_english) > 120
    assert not {name: text for name, text in in_english.items() if in_german[name] == text}


def test_a_form_shows_its_help_texts_in_german(admin_client, crashed):
    page = reverse("admin:config_crashedtask_change", args=[crashed.pk])
    text = admin_client.get(page, headers={"accept-language": "de"}).content.decode()
    assert "Seitdem wird die Aufgabe nicht ausgeführt." in text
