"""A database of a released version is brought up to date by what comes after, never by changes to
what it has already applied.
"""

import hashlib
from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    RemoveIndexConcurrently,
    ValidateConstraint,
)
from django.core.management import call_command
from django.db import models
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import (
    AddConstraint,
    AddField,
    AddIndex,
    AlterField,
    AlterModelManagers,
    AlterModelOptions,
    CreateModel,
    DeleteModel,
    RemoveConstraint,
    RemoveField,
    RemoveIndex,
    RenameField,
    RunPython,
    SeparateDatabaseAndState,
)
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import NOT_PROVIDED, Field

from projects.core.state_operations import StateOperations

OURS = ("config", "projects", "chat", "memory")
UNLOCKED = (AddIndexConcurrently, AddConstraintNotValid)
# What `RunPython` does is for its author to think of: it changes rows, not tables. Without an index
# the version before is slower, for as long as it serves.
HARMLESS = (
    AlterModelManagers,
    AlterModelOptions,
    RemoveConstraint,
    RemoveIndexConcurrently,
    RunPython,
    ValidateConstraint,
)
# Of which Django makes no SQL; `stored` compares the fields.
STATE_ONLY = (AlterField, AlterModelOptions)

# The migrations of releases: the SHA-256 of each file. A change of the data is a new migration.
RELEASED = {
    "chat/migrations/0001_initial.py": (
        "07cb8e490b360939b5e5bf5633d70ec19463aac00ab9fbdedbc4c5905f92d0f0"
    ),
    "chat/migrations/0002_no_samples.py": (
        "d9188e657440bd6cb7402891952a93de114752c62e222581483dedeabf0e5d3a"
    ),
    "config/migrations/0001_initial.py": (
        "3a4a6ef7b1936d6e4641b81d813120d8d8ae2e93d56e0996c89500009d84160f"
    ),
    "config/migrations/0002_schedule.py": (
        "a0434f7898bb40002c7a395e37950aba4d675a432f9bb351b692174feec338b8"
    ),
    "memory/migrations/0001_initial.py": (
        "c234d1ee5366f2a0fda74897d0f1aa35138a4b9e533d4341f59364b68a066a8f"
    ),
    "memory/migrations/0002_history.py": (
        "3a2e4255083241124e648990857fd70bdf44711a3e4a7a0f06cdf067e3dcbf44"
    ),
    "memory/migrations/0003_recall.py": (
        "69f0641d87481798404ebef06b85c8a2d92a943676a9a488189e9b066f9d80b7"
    ),
    "projects/migrations/0001_initial.py": (
        "289ad3be6debd42aa01f8e457aef999d1f3bc437569323db8166cc39cd1d68ca"
    ),
    "projects/migrations/0002_unlogged.py": (
        "25a54c22b5ade64d21e2c9f8d94f80580d449a82535c5f3ee34882b7dbc9d24e"
    ),
}


@pytest.mark.parametrize("path", RELEASED)
def test_a_released_migration_stays_what_it_was(path):
    content = (Path(settings.BASE_DIR) / path).read_bytes()
    assert hashlib.sha256(content).hexdigest() == RELEASED[path]


@pytest.mark.django_db
def test_the_models_need_no_further_migration():
    out = StringIO()
    call_command("makemigrations", check_changes=True, dry_run=True, stdout=out)
    assert "No changes" in out.getvalue()


def since(loader: MigrationLoader) -> dict[str, Migration]:
    """The migrations of ours that no release has."""
    ours = {
        f"{label}/migrations/{name}.py": migration
        for (label, name), migration in loader.disk_migrations.items()
        if label in OURS
    }
    return {path: migration for path, migration in ours.items() if path not in RELEASED}


def stops_the_version_before(
    operations: Iterable[Operation], before: Mapping[tuple[str, str], Field] | None = None
) -> list[str]:
    """What in these would fail the version before, which serves while they run: it writes rows
    without the columns that it does not know, and reads those that it does. `before` has the
    fields as they were, by the model's and their own name.
    """
    new_tables: set[str] = set()
    problems = []
    for operation in operations:
        if isinstance(operation, CreateModel):
            new_tables.add(operation.name_lower)
        elif isinstance(operation, AddField):
            field = operation.field
            has_default = field.null or field.db_default is not NOT_PROVIDED or field.many_to_many
            if not has_default and operation.model_name_lower not in new_tables:
                problems.append(
                    f"{operation.model_name}.{operation.name} has neither null nor db_default"
                )
        elif isinstance(operation, AddIndex | AddConstraint):
            # It would lock out whoever writes for as long as it takes.
            if not isinstance(operation, UNLOCKED) and operation.model_name_lower not in new_tables:
                problems.append(f"{operation.describe()}, but not concurrently")
        elif isinstance(operation, AlterField):
            old = (before or {}).get((operation.model_name_lower, operation.name))
            if old is None or stored(old) != stored(operation.field):
                problems.append(operation.describe())
        elif isinstance(operation, StateOperations):
            inner = operation.state_operations
            problems += [it.describe() for it in inner if not isinstance(it, STATE_ONLY)]
            problems += stops_the_version_before(inner, before)
        elif isinstance(operation, SeparateDatabaseAndState):
            problems += stops_the_version_before(operation.database_operations, before)
        elif not isinstance(operation, HARMLESS):
            problems.append(operation.describe())
    return problems


def stored(field: Field) -> tuple:
    """What the database knows of it: not its choices, and no texts for people."""
    _, path, arguments, options = field.deconstruct()
    kept = {k: v for k, v in options.items() if k not in field.non_db_attrs}
    # The elements of an array are a field, too.
    return path, arguments, {k: stored(v) if isinstance(v, Field) else v for k, v in kept.items()}


def test_later_migrations_run_while_the_previous_version_serves():
    loader = MigrationLoader(None)
    hashes = {}
    for path, migration in since(loader).items():
        state = loader.project_state((migration.app_label, migration.name), at_end=False)
        before = {
            (model, name): field
            for (app, model), its in state.models.items()
            if app == migration.app_label
            for name, field in its.fields.items()
        }
        hashes[path] = stops_the_version_before(migration.operations, before)
    assert {path: why for path, why in hashes.items() if why} == {}


@pytest.mark.parametrize(
    "operation",
    [
        RemoveField("project", "timezone"),
        DeleteModel("Webhook"),
        RenameField("project", "slug", "key"),
        AddField("project", "colour", models.CharField(max_length=7, default="")),
        AddIndex("message", models.Index(fields=["role"], name="by_role")),
        RemoveIndex("message", "message_words"),
        AlterField("session", "title", models.CharField(max_length=10)),
        StateOperations([AlterField("session", "title", models.CharField(max_length=10))]),
        StateOperations([AddField("project", "colour", models.CharField(max_length=7, null=True))]),
    ],
    ids=lambda item: item.describe(),
)
def test_an_operation_that_stops_the_previous_version_is_reported(operation):
    assert stops_the_version_before([operation])


def test_harmless_operations_pass():
    before = {("session", "title"): models.CharField(max_length=200, help_text="Its name.")}
    harmless = [
        AlterField("session", "title", models.CharField(max_length=200, choices=[("a", "A")])),
        CreateModel("Colour", [("id", models.BigAutoField(primary_key=True))]),
        AddIndex("colour", models.Index(fields=["id"], name="by_id")),
        AddField("project", "colour", models.CharField(max_length=7, null=True)),
        AddField("project", "hue", models.IntegerField(db_default=0)),
        AddIndexConcurrently("message", models.Index(fields=["role"], name="by_role")),
        RemoveIndexConcurrently("message", "message_words"),
        StateOperations([AlterModelOptions("session", {"verbose_name": "chat"})]),
    ]
    assert stops_the_version_before(harmless, before) == []


def test_models_are_rendered_again_after_state_operations():
    state = ProjectState()
    CreateModel("Colour", [("id", models.BigAutoField(primary_key=True))]).state_forwards(
        "projects", state
    )
    assert state.apps.get_model("projects", "Colour")._meta.verbose_name == "colour"
    relabel = StateOperations([AlterModelOptions("Colour", {"verbose_name": "hue"})])
    relabel.state_forwards("projects", state)
    assert state.apps.get_model("projects", "Colour")._meta.verbose_name == "hue"
