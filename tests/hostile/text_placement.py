"""Hostile texts in every column of text that a project and its people have.

What is written goes past the checks of forms: whatever got into the database by some way, no page
may obey it.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import CharField, JSONField, Model, TextField

from chat.models import Message, ModelPrice, ModelProvider
from memory.models import Call, Fact, RenderedBank
from projects.models import Project, ServerModels, Token
from tests.hostile.payloads import PAYLOADS, mark
from tests.memory.text_columns import text_columns

# What is no text of anybody's: names of things, which the database or Strata itself chose.
KEPT = (
    *("slug", "timezone", "search_language", "digest", "token_key", "scopes", "key", "request"),
    *("made", "subject", "subject_key", "predicate_key", "media_type", "sha256", "format", "file"),
    *("granularity", "period_key", "related", "reason", "receipt", "text_hash", "fingerprint"),
    *("zone", "sources_hash", "state", "topic", "salt", "previous_salt", "data", "language"),
    *("source_key", "pieces", "terms", "included", "left_out", "embedder", "tool_calls", "lookups"),
    *("role_before", "role_after", "share_key"),
)
KEPT_OF = {
    (Fact, "subject"): False,
    (Message, "tool_call_id"): True,
    (Call, "outcome"): False,
    # One row for all projects, which would have no model then.
    (ServerModels, "chat_model"): True,
    (ServerModels, "system_model"): True,
}


def columns() -> list[tuple[type[Model], str]]:
    """The columns of text that are planted, people's own among them; the place of each in this list
    is its number in a mark.
    """
    text_fields = [
        (model, name)
        for model, names in text_columns().items()
        for name in sorted(names)
        if not KEPT_OF.get((model, name), name in KEPT)
    ]
    text_fields.sort(key=lambda item: (item[0]._meta.label, item[1]))
    user = get_user_model()
    return [
        *text_fields,
        *((user, name) for name in ("username", "first_name", "last_name", "email")),
    ]


def label(number: int) -> str:
    model, name = columns()[number]
    return f"{model._meta.model_name}.{name}"


def plant(user: int, first: int, step: int = 1) -> None:
    """Every row of every column has a payload, the next of each `step` from `first` on."""
    projects = Project.objects.filter(memberships__user=user).order_by("-pk")
    people = get_user_model().objects.filter(memberships__project__in=projects).distinct()
    for number, (model, name) in enumerate(columns()):
        if model is Project:
            rows: Iterable[Any] = projects
        elif model is get_user_model():
            rows = people.order_by("pk")
        elif model is Token:
            rows = Token.objects.filter(user=user)
        elif model is ModelProvider:
            rows = ModelProvider.objects.order_by("-pk")
        elif model is ModelPrice:
            rows = ModelPrice.objects.order_by("-pk")
        else:
            rows = model.objects.filter(project_id__in=projects).order_by("-pk")
        _write(model, name, list(rows), number, first, step)
    RenderedBank.objects.filter(project__in=projects).update(fingerprint="")


def _write(
    model: type[Model], name: str, rows: list[Any], number: int, first: int, step: int
) -> None:
    field = model._meta.get_field(name)
    for place, row in enumerate(rows):
        # Others in each column, so that few rows already show most of them somewhere.
        payload = (first + step * place + 31 * number) % len(PAYLOADS)
        text = f"{mark(number, payload)} {PAYLOADS[payload]}"
        if name in ("text", "summary", "content", "instructions"):
            # Where it may stand on lines of its own, Markdown takes it for a block.
            text = f"{mark(number, payload)}\n\n{PAYLOADS[payload]}"
        if isinstance(field, JSONField):
            value: Any = _with_text(getattr(row, name), text)
        elif name == "url":
            value = f"x:{text}://{text}"[: field.max_length]
        else:
            assert isinstance(field, CharField | TextField)
            value = text[: field.max_length]
            if isinstance(field, CharField) and field.unique:
                value = f"{row.pk} {text}"[: field.max_length]
        setattr(row, name, value)
    model._base_manager.bulk_update(rows, [name], batch_size=200)


def _with_text(value: Any, text: str) -> Any:
    """`value` with `text` in place of every text in it that is no key."""
    if isinstance(value, dict):
        return {
            key: item if key == "kind" else _with_text(item, text) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_with_text(item, text) for item in value]
    return text if isinstance(value, str) else value
