"""A line of an export becomes a row of the project that it is brought into."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID
from zipfile import ZipFile

from django.core.exceptions import ValidationError
from django.db.models import Field, ForeignKey, Model

from chat import tokens, tooling
from chat.importers.base import Refused
from chat.models import Message, Status
from chat.models.messages import FINAL
from chat.storable import storable
from memory.models import Entry, EntryState, Fact, Grave, State, Tombstone
from memory.portability.identity import renamed
from memory.portability.reading import Row, lines, uuid_in
from memory.portability.tables import Table, is_person
from projects.models import Project


@dataclass
class Arrival:
    """One import: where to, who may be whom, and which ids the file has; `strangers` are those of
    what is nobody's here.
    """

    project: Project
    people: Mapping[str, Any]
    ids: dict[type[Model], set[UUID]] = field(default_factory=dict)
    strangers: set[object] = field(default_factory=set)

    def new_id(self, told: object, model: type[Model]) -> UUID | None:
        """What the id `told` of a row of `model` is here; None for one that is not in the file."""
        given = uuid_in(told)
        there = self.ids.get(model)
        if given is None or (there is not None and given not in there):
            return None
        return renamed(self.project.pk, given)


def rows(archive: ZipFile, table: Table, arrival: Arrival) -> Iterator[tuple[Any, Row]]:
    """What is to be written of a table, each beside its line."""
    for place, told in lines(archive, table):
        row = _row(table, place, told, arrival)
        if row is not None:
            yield row, told


def _row(table: Table, place: str, told: Row, arrival: Arrival) -> Model | None:
    """The row of a line, not saved yet; None for one that is nobody's here. What the line does not
    tell is as in a new row. Raises Refused.
    """
    row = table.model(project_id=arrival.project.pk)  # type: ignore[misc]
    for column in table.columns:
        if column.name not in told:
            continue
        value = told[column.name]
        if is_person(column):
            person = arrival.people.get(value) if isinstance(value, str) else None
            if person is None and value is not None and column.name in table.whose:
                arrival.strangers.add(told.get("id"))
                return None
            setattr(row, column.name, person)
        elif value is not None and (isinstance(column, ForeignKey) or column.primary_key):
            if isinstance(value, str) and value in arrival.strangers:
                return None
            model = column.related_model if isinstance(column, ForeignKey) else table.model
            found = arrival.new_id(value, model)  # type: ignore[arg-type]
            if found is None and not column.null:
                raise Refused(f"{place}: it names a row that the export does not hold.")
            setattr(row, column.attname, found)
        else:
            setattr(row, column.attname, value_of(column, value, place))
    adjust = _ADJUSTMENTS.get(table.model)
    if adjust:
        adjust(row, told, arrival)
    return row


def value_of(column: Field, told: Any, place: str) -> Any:
    text = storable(told) if isinstance(told, str) else told
    try:
        return column.to_python(text)
    except (ValidationError, ValueError, TypeError, OverflowError) as error:
        raise Refused(f"{place}: {column.name} is not what it should be.") from error


def _message(message: Message, told: Row, arrival: Arrival) -> None:
    """Whoever is nobody here speaks under the name they had."""
    if message.author is None and not message.author_name:
        message.author_name = storable(str(told.get("author") or ""))[:120]
    if message.status not in FINAL:
        message.status = Status.INTERRUPTED
    message.tokens = tokens.count(message.text)
    message.tool_calls = tooling.written(tooling.read(message.tool_calls))
    message.receipt = _receipt(message.receipt, arrival)


def _receipt(told: object, arrival: Arrival) -> Row:
    """With the ids that things have here."""
    if not isinstance(told, dict):
        return {}
    for section in told.get("sections", ()):
        for item in section.get("items", ()):
            given = uuid_in(item.get("id"))
            item["id"] = str(renamed(arrival.project.pk, given)) if given else ""
    return told


def _entry(entry: Entry, told: Row, arrival: Arrival) -> None:
    """One whose digest stayed behind speaks for itself again."""
    if entry.state == State.ABSORBED and entry.parent_id is None:
        entry.state = State.LIVE


def _entry_state(state: EntryState, told: Row, arrival: Arrival) -> None:
    state.parent_id = arrival.new_id(told.get("parent_id"), Entry)


def _fact(fact: Fact, told: Row, arrival: Arrival) -> None:
    """What is worked out from its words hangs on who is whom here."""
    fact.set_keys()


def _tombstone(stone: Tombstone, told: Row, arrival: Arrival) -> None:
    given = uuid_in(stone.subject)
    if stone.kind != Grave.SOURCE and given is not None:
        stone.subject = str(renamed(arrival.project.pk, given))


_ADJUSTMENTS: dict[type[Model], Callable[[Any, Row, Arrival], None]] = {
    Message: _message,
    Entry: _entry,
    EntryState: _entry_state,
    Fact: _fact,
    Tombstone: _tombstone,
}
