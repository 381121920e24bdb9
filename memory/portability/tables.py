"""The tables of an export in the order of their import, and the rows to export from each table."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Exists, Field, ForeignKey, Model, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import translation

from chat.models import (
    Attachment,
    Message,
    MessageRevision,
    Reaction,
    SavedPrompt,
    Session,
    Visibility,
)
from memory.models import (
    Block,
    Cursor,
    Entry,
    EntryRevision,
    EntryState,
    EntryStatus,
    Fact,
    FactSource,
    FactStatus,
    File,
    FilePassage,
    FileRevision,
    Tombstone,
    TombstoneKind,
)
from projects.models import Project

FORMAT = "strata-project"
VERSION = 1
MANIFEST, SCHEMA, SETTINGS = "manifest.json", "schema.json", "project.json"
# Columns of a project that are not exported, because they depend on the server.
LOCAL_COLUMNS = (
    *("id", "name", "slug", "demo_progress", "has_files", "archived_at", "created_at"),
    # Decided by the administrators of each server.
    "allowed_models",
)


@dataclass(frozen=True)
class ExportScope:
    """The part of a project to export: everything that `viewer` may read, or with `only_own` only
    the viewer's own data. Without a viewer, everything is exported.
    """

    project: Project
    viewer: Any = None
    only_own: bool = False

    def sessions(self) -> QuerySet[Session]:
        """Return the sessions to export, including those whose messages the viewer may not read."""
        rows = Session.objects.not_deleted().filter(project=self.project)
        if not self.only_own:
            return rows
        written = Message.objects.filter(session=OuterRef("pk"), author=self.viewer)
        shared = Q(Exists(written), visibility=Visibility.PROJECT)
        return rows.filter(Q(creator=self.viewer) | shared)

    def readable(self, path: str) -> Q:
        """Return the condition that the viewer may read the session at the lookup path `path`."""
        if self.viewer is None:
            return Q()
        own = Q(**{f"{path}creator": self.viewer})
        return own if self.only_own else own | Q(**{f"{path}visibility": Visibility.PROJECT})

    def of_sessions(self, rows: QuerySet) -> QuerySet:
        sessions = self.sessions().order_by().values("pk")
        return rows.filter(project=self.project, session__in=sessions)

    def messages(self) -> QuerySet[Message]:
        readable = self.readable("session__")
        if self.only_own:
            readable |= Q(session__visibility=Visibility.PROJECT, author=self.viewer)
        return self.of_sessions(Message.objects.all()).filter(readable)

    def has_text(self, message: Message) -> bool:
        """Return whether the text of the message is exported. Without a viewer, this includes
        messages that moderators have hidden and may show again.
        """
        is_hidden = self.viewer is None and message.hidden_at is not None
        return message.deleted_at is None or is_hidden

    def of_messages(self, rows: QuerySet) -> QuerySet:
        """Return the rows that belong to messages whose text is exported."""
        shown = Q(deleted_at=None)
        if self.viewer is None:
            shown |= Q(hidden_at__isnull=False)
        messages = self.messages().filter(shown).order_by().values("pk")
        return rows.filter(project=self.project, message__in=messages)

    def own(self, rows: QuerySet, path: str = "user") -> QuerySet:
        """Return the viewer's rows and, unless `only_own`, the rows without a user."""
        rows = rows.filter(project=self.project)
        if self.viewer is None:
            return rows
        own = Q(**{path: self.viewer})
        return rows.filter(own if self.only_own else own | Q(**{path: None}))

    def entries(self) -> QuerySet[Entry]:
        """Return the entries that pages would show to the viewer.

        Proposed entries of private sessions may quote them, so only the session's creator gets
        them. Entries of files are exported with the files, those of deleted sessions are not.
        """
        versions = self.file_revisions().order_by().values("pk")
        rows = Entry.objects.filter(
            Q(file=None) | Q(file__in=versions), project=self.project, session__deleted_at=None
        )
        if self.viewer is None:
            return rows
        if self.only_own:
            return rows.filter(session__creator=self.viewer)
        readable = Q(session=None) | self.readable("session__")
        return rows.filter(~Q(state=EntryStatus.PROPOSED) | readable)

    def of_entries(self, rows: QuerySet) -> QuerySet:
        entries = self.entries().order_by().values("pk")
        return rows.filter(project=self.project, entry__in=entries)

    def entry_revisions(self) -> QuerySet[EntryRevision]:
        rows = self.of_entries(EntryRevision.objects.all())
        if self.viewer is None:
            return rows
        rows = rows.filter(entry__withheld=False)
        return rows.filter(Q(entry__session=None) | self.readable("entry__session__"))

    def fact_sources(self) -> QuerySet[FactSource]:
        """Return the fact sources whose message and entry are exported. For a viewer, those in
        withheld entries are left out.
        """
        messages = self.messages().order_by().values("pk")
        entries = self.entries().order_by()
        if self.viewer is not None:
            entries = entries.filter(withheld=False)
        rows = self.own(FactSource.objects.all(), "fact__user")
        return rows.filter(message__in=messages, entry__in=entries.values("pk"))

    def files(self) -> QuerySet[File]:
        """Return the files of the project, and of chats whose messages the viewer may read."""
        rows = File.objects.filter(project=self.project, session__deleted_at=None)
        if self.viewer is None:
            return rows
        if self.only_own:
            rows = rows.filter(added_by=self.viewer)
        return rows.filter(Q(session=None) | self.readable("session__"))

    def file_revisions(self) -> QuerySet[FileRevision]:
        documents = self.files().order_by().values("pk")
        return FileRevision.objects.filter(project=self.project, document__in=documents)

    def file_passages(self) -> QuerySet[FilePassage]:
        revisions = self.file_revisions().order_by().values("pk")
        return FilePassage.objects.filter(project=self.project, revision__in=revisions)

    def tombstones(self) -> QuerySet[Tombstone]:
        """Return all tombstones except those of users, because user ids differ between servers."""
        rows = Tombstone.objects.filter(project=self.project)
        return rows.exclude(kind=TombstoneKind.USER)

    def facts(self) -> QuerySet[Fact]:
        """Return facts entered by hand and facts with an exported source, in all versions.

        A viewer gets an earlier version that waited for review only if an exported source was found
        before it was replaced. Otherwise, it may be from a private session of another member.
        """
        fact = Coalesce(OuterRef("earlier_of"), OuterRef("pk"))
        sources = self.fact_sources().filter(fact=fact)
        rows = self.own(Fact.objects.all()).filter(Q(by_hand=True) | Exists(sources))
        if self.viewer is None:
            return rows
        waited = Q(state=FactStatus.PROPOSED) | ~Q(waits_because="")
        found_before = Exists(sources.filter(found_at__lte=OuterRef("retired_at")))
        return rows.filter(Q(earlier_of=None) | Q(by_hand=True) | ~waited | found_before)


@dataclass(frozen=True)
class ExportTable:
    """One file of an export. Columns in `left_out` are not exported.

    Exports of earlier versions do not contain tables that are `added_later`. A row is skipped by
    the import if the user in one of the `owners` columns is unknown there.
    """

    name: str
    model: type[Model]
    rows: Callable[[ExportScope], QuerySet]
    left_out: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    # Exports of earlier versions do not contain the table.
    added_later: bool = False

    @property
    def columns(self) -> list[Field]:
        return [
            field
            for field in self.model._meta.concrete_fields
            if field.name != "project" and field.name not in self.left_out
        ]


def rows_of_messages(model: type[Model]) -> Callable[[ExportScope], QuerySet]:
    return lambda scope: scope.of_messages(model._default_manager.all())


LEASE_COLUMNS = ("lease_holder", "lease_until", "failures", "next_try_at", "last_error")
TABLES = (
    ExportTable("sessions", Session, ExportScope.sessions, ("deleted_at", "share_key")),
    ExportTable("messages", Message, ExportScope.messages, ("stop_requested", "heartbeat_at")),
    ExportTable("revisions", MessageRevision, rows_of_messages(MessageRevision)),
    ExportTable("reactions", Reaction, rows_of_messages(Reaction), owners=("user",)),
    ExportTable(
        "attachments", Attachment, rows_of_messages(Attachment), ("file", "size", "sha256")
    ),
    ExportTable(
        "cursors", Cursor, lambda scope: scope.of_sessions(Cursor.objects.all()), LEASE_COLUMNS
    ),
    ExportTable("files", File, ExportScope.files, added_later=True),
    ExportTable(
        "file_revisions",
        FileRevision,
        ExportScope.file_revisions,
        (*LEASE_COLUMNS, "file", "indexed_passages"),
        added_later=True,
    ),
    ExportTable("file_passages", FilePassage, ExportScope.file_passages, added_later=True),
    ExportTable("entries", Entry, ExportScope.entries),
    ExportTable("entry_revisions", EntryRevision, ExportScope.entry_revisions),
    ExportTable(
        "entry_states",
        EntryState,
        lambda scope: scope.of_entries(EntryState.objects.all()),
        ("id",),
    ),
    ExportTable("blocks", Block, lambda scope: scope.own(Block.objects.all()), owners=("user",)),
    ExportTable(
        "saved_prompts",
        SavedPrompt,
        lambda scope: scope.own(SavedPrompt.objects.all()),
        owners=("user",),
    ),
    ExportTable("facts", Fact, ExportScope.facts, owners=("user",)),
    ExportTable("fact_sources", FactSource, ExportScope.fact_sources),
    ExportTable("tombstones", Tombstone, ExportScope.tombstones),
)


def is_user(field: Field) -> bool:
    """Return whether a column refers to a user. The export then contains the username."""
    return isinstance(field, ForeignKey) and field.related_model is get_user_model()


def setting_columns() -> Iterable[Field]:
    return (field for field in Project._meta.concrete_fields if field.name not in LOCAL_COLUMNS)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the lines of each file, with English descriptions.

    Exports do not depend on the language of the page on which they are started.
    """
    with translation.override("en"):
        definitions = {table.name: row_schema(table.columns) for table in TABLES}
        definitions["project"] = row_schema(setting_columns())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


def row_schema(columns: Iterable[Field]) -> dict[str, Any]:
    properties = {field.name: column_schema(field) for field in columns}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


COLUMN_SCHEMAS: dict[str, dict[str, Any]] = {
    "ArrayField": {"type": "array", "items": {"type": "string"}},
    "BooleanField": {"type": "boolean"},
    "DateTimeField": {"type": "string", "format": "date-time"},
    "DecimalField": {"type": "string", "pattern": r"^-?\d+(\.\d+)?$"},
    "FloatField": {"type": "number"},
    "JSONField": {},
    "UUIDField": {"type": "string", "format": "uuid"},
}


def column_schema(field: Field) -> dict[str, Any]:
    type_name = field.get_internal_type()
    if is_user(field):
        schema: dict[str, Any] = {"type": "string", "description": "A username."}
    elif isinstance(field, ForeignKey) or type_name == "OneToOneField":
        schema = {"type": "string", "format": "uuid"}
    elif "Integer" in type_name or type_name == "BigAutoField":
        schema = {"type": "integer"}
    else:
        schema = dict(COLUMN_SCHEMAS.get(type_name, {"type": "string"}))
    if field.choices:
        values = [value for value, _ in field.flatchoices]
        schema["enum"] = values + ([""] if field.blank else [])
    if field.null:
        schema = {"anyOf": [schema, {"type": "null"}]}
    if field.help_text:
        schema["description"] = str(field.help_text)
    return schema
