"""Cache of the rendered bank of each project, valid until its entries, facts or budget change."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.contrib.postgres.aggregates import StringAgg
from django.db import transaction
from django.db.models import (
    BigIntegerField,
    CharField,
    Count,
    F,
    Func,
    Max,
    Q,
    QuerySet,
    Subquery,
    Sum,
    TextField,
    Value,
)
from django.db.models.functions import MD5, Cast, Concat
from django.utils import timezone

from memory.facts.superseded import ended_facts, mark_ended
from memory.layers import bank
from memory.layers.bank import BankItem
from memory.models import Entry, Fact, FactStatus, RenderedBank
from projects.core.database import PreparedQuery
from projects.models import Project

# The rendered text depends on these columns of the entries.
FINGERPRINT_COLUMNS = ("id", "revision", "state", "pinned", "session__visibility", "session__title")
# Part of the fingerprint. Changing it makes all stored banks of an older format invalid.
FORMAT = "single quotation marks"
STORED_COLUMNS = ("fingerprint", "text", "tokens", "version", "included", "left_out")


class EpochSeconds(Func):
    """The whole seconds from 1970 to a time. Their sum does not depend on the order of the rows."""

    template = "DATE_PART('epoch', %(expressions)s)::bigint"
    output_field = BigIntegerField()


@dataclass(frozen=True)
class IncludedEntry:
    """An entry in the bank's text, for prompts and receipts. `places` are the indexes of its lines
    in the bank, `of` is the number of its lines, and `tokens` the number of tokens of its lines in
    the bank.
    """

    id: UUID
    granularity: str
    revision: int
    tokens: int
    label: str
    places: Sequence[int]
    of: int


@dataclass(frozen=True)
class ProjectBank:
    """A rendered bank: its text, the entries in it in order, and pairs (id, reason) of those left
    out.

    `version` increases when the text for the full budget changes. It is 0 for a smaller budget.
    """

    text: str
    tokens: int
    included: tuple[IncludedEntry, ...]
    left_out: tuple[tuple[UUID, str], ...]
    version: int = 0


def bank_entries(project: Project) -> QuerySet[Entry]:
    """Return the entries that may be in the project's bank, newest first."""
    return project.entries.bank_candidates().select_related("session").newest_first()


def rendered_bank(project: Project, max_tokens: int | None = None) -> ProjectBank:
    """Return the project's bank for its full budget, or for `max_tokens` if that is smaller.

    While nothing changes, the bank for the full budget takes one query, which reads the stored and
    the current fingerprint.
    """
    if max_tokens is not None and max_tokens < project.bank_max_tokens:
        return _render(project, bank_entries(project), max_tokens)
    while True:
        fingerprint, (stored, text, tokens, version, included, left_out) = _read(project)
        if stored == fingerprint:
            return ProjectBank(
                text=text,
                tokens=tokens,
                included=tuple(
                    IncludedEntry(UUID(pk), *values) for pk, *values in json.loads(included)
                ),
                left_out=tuple((UUID(pk), reason) for pk, reason in json.loads(left_out)),
                version=version,
            )
        rendered = _render(project, bank_entries(project), project.bank_max_tokens)
        # Render again if something has changed since, such as an entry that was forgotten.
        if (bank := _store(project, fingerprint, rendered)) is not None:
            return bank


def _read(project: Project) -> tuple[str, list[Any]]:
    """Return the current fingerprint and the columns of the stored bank."""
    [(hash, fact_change, *stored)] = _prepared_rows(project.pk, timezone.now())
    # The time zone determines the day on which a fact ended.
    parts = f"{FORMAT} {project.bank_max_tokens} {project.timezone} {[hash, fact_change]}"
    return sha256(parts.encode()).hexdigest(), stored


@PreparedQuery.of(UUID, datetime)
def _prepared_rows(project: UUID, moment: datetime) -> QuerySet:
    """Return a query for the current hash of the project's entries, for numbers that change with
    its facts, and for the columns of its stored bank.

    A fact can begin or end by `moment` without a change of its row.
    """
    columns = (Cast(F(name), TextField()) for name in FINGERPRINT_COLUMNS)
    row = Concat(*columns, output_field=TextField())
    entries = Entry.objects.filter(project=project).bank_candidates().order_by()
    joined = StringAgg(row, Value(";"), order_by="id", default=Value(""))
    hashes = entries.values("project").annotate(hash=MD5(joined, output_field=CharField()))
    live = Fact.objects.filter(project=project, user=None, state=FactStatus.LIVE).order_by()
    numbers = (
        Count("pk"),
        Max("recorded_at"),
        Count("retired_at"),
        Sum(EpochSeconds("valid_from")),
        Count("pk", filter=Q(valid_from__lte=moment)),
        Count("pk", filter=Q(valid_until__lte=moment)),
    )
    parts = [part for number in numbers for part in (number, Value(" "))]
    facts = live.values("project").annotate(change=Concat(*parts, output_field=TextField()))
    return (
        Project.objects.filter(pk=project)
        .annotate(
            hash=Subquery(hashes.values("hash")), fact_change=Subquery(facts.values("change"))
        )
        .values_list("hash", "fact_change", *(f"rendered_bank__{name}" for name in STORED_COLUMNS))
    )


def bank_items(project: Project, entries: Iterable[Entry]) -> list[BankItem]:
    """Return `entries` as items. A line with an ended fact gets the day on which it ended."""
    items = [entry.as_item() for entry in entries]
    ended = ended_facts(project) if items else ()
    return [replace(item, lines=mark_ended(item.lines, ended)) for item in items]


def _render(project: Project, rows: Iterable[Entry], max_tokens: int) -> ProjectBank:
    entries = {entry.pk: entry for entry in rows}
    rendered = bank.render(bank_items(project, entries.values()), max_tokens)
    return ProjectBank(
        text=rendered.text,
        tokens=rendered.tokens,
        included=tuple(
            IncludedEntry(
                entry.pk,
                entry.granularity,
                entry.revision,
                shown.tokens,
                entry.label,
                shown.places,
                shown.of,
            )
            for shown in rendered.included
            if (entry := entries[shown.id])
        ),
        left_out=rendered.left_out,
    )


@transaction.atomic
def _store(project: Project, fingerprint: str, rendered: ProjectBank) -> ProjectBank | None:
    """Store and return the bank. Return None if the project's memory has another fingerprint now.

    Otherwise, text that was forgotten in the meantime would be stored again.
    """
    RenderedBank.objects.get_or_create(project=project)
    row = RenderedBank.objects.select_for_update().get(pk=project.pk)
    if _read(project)[0] != fingerprint:
        return None
    text_hash = sha256(rendered.text.encode()).hexdigest()
    if row.text_hash != text_hash:
        row.version += 1
    row.fingerprint, row.text_hash = fingerprint, text_hash
    row.text, row.tokens = rendered.text, rendered.tokens
    row.included = [[str(entry.id), *astuple(entry)[1:]] for entry in rendered.included]
    row.left_out = [[str(pk), reason] for pk, reason in rendered.left_out]
    row.save()
    return replace(rendered, version=row.version)
