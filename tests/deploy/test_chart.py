"""The Helm chart matches Strata. `make rehearsal` renders it and checks it against Kubernetes."""

import json
import re
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from django.conf import settings

from config import __version__

CHART = Path(settings.BASE_DIR) / "deploy/helm/strata"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def validator():
    # Imported here, because it takes seconds in each process of a parallel run.
    from jsonschema import Draft7Validator

    return Draft7Validator(SCHEMA)


def is_valid(changes: dict) -> bool:
    """Whether the default values with these changes, by dotted name, are accepted."""
    values = deepcopy(VALUES)
    for name, value in changes.items():
        *parents, last = name.split(".")
        place = values
        for parent in parents:
            place = place[parent]
        place[last] = value
    return validator().is_valid(values)


def test_it_has_the_version_of_strata():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__


def test_its_workers_consume_every_queue_once():
    consumed = VALUES["worker"]["queues"] + VALUES["heavyWorker"]["queues"]
    assert sorted(consumed) == sorted(settings.QUEUES)
    queues = SCHEMA["definitions"]["worker"]["properties"]["queues"]["items"]["enum"]
    assert sorted(queues) == sorted(settings.QUEUES)


def test_the_schema_is_one():
    validator().check_schema(SCHEMA)


@pytest.mark.parametrize(
    "changes",
    [
        {"secrets.existing": "strata-secrets"},
        {"secrets.data": {"DATABASE_URL": "postgresql://…", "STRATA_SECRET_KEY": "long"}},
        {"secrets.existing": "s", "image.digest": f"sha256:{'0' * 64}"},
    ],
)
def test_values_that_suffice_are_accepted(changes):
    assert is_valid(changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"secrets.data": {"DATABASE_URL": "postgresql://…"}},
        {"url": "strata.example.org"},
        {"worker.queues": ["chats"]},
        {"worker.replica": 3},
        {"web.replicas": 0},
        {"image.digest": "sha256:0"},
        {"config": {"strata url": "…"}},
        {"persistence.size": "many"},
    ],
)
def test_values_that_would_fail_later_are_rejected(changes):
    existing = {} if "secrets.data" in changes or not changes else {"secrets.existing": "strata"}
    assert not is_valid(existing | changes)


def test_pods_that_wait_for_tables_print_errors():
    """A pod with an invalid setting waits for ever, and its log is where people look."""
    [command] = re.findall("until (.*?);", (CHART / "templates/_helpers.tpl").read_text())
    assert command == "strata migrate --check"
