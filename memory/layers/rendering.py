"""The bank of a project as it stands in prompts, rendered once for as long as nothing changes."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from django.contrib.postgres.aggregates import StringAgg
from django.db import transaction
from django.db.models import CharField, F, QuerySet, Subquery, TextField, Value
from django.db.models.functions import MD5, Cast, Concat

from chat.compiled import Compiled
from memory.layers import bank
from memory.models import Entry, RenderedBank
from projects.models import Project


@dataclass(frozen=True)
class Shown:
    """An entry as it stands in the text: what prompts and receipts tell of it."""

    id: UUID
    granularity: str
    revision: int
    tokens: int
    label: str


@dataclass(frozen=True)
class Rendered:
    """The bank's text with what stands in it, in its order, and what does not, with the reason.

    `version` rises only when the text of the whole budget changes; 0 for a text that was rendered
    for less than that.
    """

    text: str
    tokens: int
    included: tuple[Shown, ...]
    left_out: tuple[tuple[UUID, str], ...]
    version: int = 0


def bank_entries(project: Project) -> QuerySet[Entry]:
    """The entries that may stand in the project's bank, newest first."""
    return project.entries.in_the_bank().select_related("session").newest_first()


def rendered_bank(project: Project, max_tokens: int | None = None) -> Rendered:
    """The project's bank in its whole budget, or in `max_tokens` if that is less.

    The whole one takes one query while nothing changes: what it was rendered from is compared
    with what there is, so nobody has to remember to throw the old text away.
    """
    if max_tokens is not None and max_tokens < project.bank_max_tokens:
        return _render(bank_entries(project), max_tokens)
    [(found, fingerprint, text, tokens, version, included, left_out)] = _marked(project.pk)
    mark = f"{project.bank_max_tokens} {found}"
    if fingerprint == mark:
        return _told(text, tokens, version, json.loads(included), json.loads(left_out))
    return _keep(project, mark, _render(bank_entries(project), project.bank_max_tokens))


def _rows(project: UUID) -> QuerySet:
    """What is kept of a project's bank, behind a mark that changes when the rendered text may: with
    the entries and their sessions' names.
    """
    columns = ("id", "revision", "state", "pinned", "session__visibility", "session__title")
    row = Concat(*(Cast(F(name), TextField()) for name in columns), output_field=TextField())
    rows = Entry.objects.filter(project=project).in_the_bank().order_by()
    joined = StringAgg(row, Value(";"), order_by="id", default=Value(""))
    marks = rows.values("project").annotate(mark=MD5(joined, output_field=CharField()))
    kept = ("fingerprint", "text", "tokens", "version", "included", "left_out")
    return (
        Project.objects.filter(pk=project)
        .annotate(mark=Subquery(marks.values("mark")))
        .values_list("mark", *(f"rendered_bank__{name}" for name in kept))
    )


_marked = Compiled(_rows, UUID)


def _render(entries: Iterable[Entry], max_tokens: int) -> Rendered:
    found = {entry.pk: entry for entry in entries}
    text = bank.render([entry.as_item() for entry in found.values()], max_tokens)
    shown = (found[pk] for pk in text.included)
    return Rendered(
        text=text.text,
        tokens=text.tokens,
        included=tuple(
            Shown(one.pk, one.granularity, one.revision, one.tokens, one.label) for one in shown
        ),
        left_out=text.left_out,
    )


@transaction.atomic
def _keep(project: Project, mark: str, rendered: Rendered) -> Rendered:
    RenderedBank.objects.get_or_create(project=project)
    kept = RenderedBank.objects.select_for_update().get(pk=project.pk)
    digest = sha256(rendered.text.encode()).hexdigest()
    if kept.text_hash != digest:
        kept.version += 1
    kept.fingerprint, kept.text_hash = mark, digest
    kept.text, kept.tokens = rendered.text, rendered.tokens
    kept.included = [
        [str(one.id), one.granularity, one.revision, one.tokens, one.label]
        for one in rendered.included
    ]
    kept.left_out = [[str(pk), reason] for pk, reason in rendered.left_out]
    kept.save()
    return _told(kept.text, kept.tokens, kept.version, kept.included, kept.left_out)


def _told(text: str, tokens: int, version: int, included: list, left_out: list) -> Rendered:
    """The bank as it is kept."""
    return Rendered(
        text=text,
        tokens=tokens,
        included=tuple(Shown(UUID(pk), *others) for pk, *others in included),
        left_out=tuple((UUID(pk), reason) for pk, reason in left_out),
        version=version,
    )
