"""No column that may hold somebody's words is left out of the plan by which they are forgotten."""

import pytest
from django.apps import apps
from django.db import connection, models

from memory.forgetting.stores import STORES
from tests.memory.text_columns import text_columns

OURS = ("projects", "chat", "memory")
TEXT = (models.CharField, models.TextField, models.JSONField, models.FileField, models.BinaryField)


def columns_of_text(model) -> set[str]:
    fields = model._meta.concrete_fields
    return {field.name for field in fields if isinstance(field, TEXT) and not field.choices}


@pytest.mark.parametrize(
    "model",
    [model for name in OURS for model in apps.get_app_config(name).get_models()],
    ids=lambda model: model.__name__,
)
def test_every_column_of_text_is_planned(model):
    assert columns_of_text(model) - text_columns().get(model, set()) == set()


@pytest.mark.django_db
def test_postgresql_keeps_no_samples_of_messages():
    sampled = set()
    for store in STORES:
        for model, names in store.texts.items():
            for name in set(names) - {"receipt", "error", "emoji", "file", "included", "left_out"}:
                column = model._meta.get_field(name).column
                sampled |= sampled_columns(model._meta.db_table, column)
    for index in ("message_searched", "entry_words", "entry_revision_words", "fact_words"):
        sampled |= sampled_columns(index, None)
    assert sampled == set()


def sampled_columns(relation: str, column: str | None) -> set[str]:
    """The columns of `relation` (that one, or all) of which ANALYZE keeps samples."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
            " AND coalesce(attstattarget, -1) <> 0 AND (%s::text IS NULL OR attname = %s)",
            [relation, column, column],
        )
        return {f"{relation}.{name}" for (name,) in cursor.fetchall()}
