"""All admin pages comply with the content security policy, and speak the reader's language."""

import re

import pytest
from django.contrib import admin
from django.contrib.admin.utils import label_for_field
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from config.models import CrashedTask

pytestmark = pytest.mark.django_db


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
    ours = ("projects", "chat", "memory", "config")
    admins = {m: a for m, a in admin.site._registry.items() if m._meta.app_label in ours}
    english = []
    for model, model_admin in admins.items():
        fields = model_admin.fields or [f.name for f in model._meta.fields if f.editable]
        shown = {*model_admin.list_display, *fields} - {"__str__", "id"}
        names = {name: label_for_field(name, model, model_admin) for name in shown}
        english += [f"{model}: {n}" for n, label in names.items() if not isinstance(label, Promise)]
    assert len(admins) > 40
    assert not english


def test_a_german_reads_german_columns(admin_client, crashed):
    page = reverse("admin:config_crashedtask_changelist")
    text = admin_client.get(page, headers={"accept-language": "de"}).content.decode()
    columns = re.findall(r'<div class="text">.*?>([^<]+)</', text)
    assert columns[-3:] == ["Abstürze", "Letzter Absturz", "Pausiert seit"]
    assert "Abgestürzte Aufgaben" in text
