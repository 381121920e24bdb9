"""What is exported, table by table, in the order in which it is imported."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, Field, ForeignKey, Model, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from chat.models import (
    Attachment,
    FileRemoval,
    Import,
    ImportedStretch,
    Message,
    MessageRevision,
    Reaction,
    Seen,
    Session,
    Visibility,
)
from memory.models import (
    Activity,
    Block,
    Call,
    Chunk,
    Corpus,
    Cursor,
    Delivery,
    EntriesChanged,
    Entry,
    EntryRevision,
    EntryState,
    Fact,
    FactSource,
    Grave,
    IndexCursor,
    Ladder,
    Nudge,
    RenderedBank,
    State,
    Tombstone,
    Vector,
    Webhook,
)
from projects.models import (
    Bucket,
    IdempotencyKey,
    Invitation,
    Membership,
    Project,
    SpentInvitation,
    Token,
)

FORMAT = "strata-project"
VERSION = 1
MANIFEST, SCHEMA, SETTINGS = "manifest.json", "schema.json", "project.json"
# Of a project's row, what is about its place here.
NOT_SETTINGS = ("id", "name", "slug", "archived_at", "created_at")


@dataclass(frozen=True)
class Extent:
    """How much of a project is exported: what `viewer` may read, or with `only_own` what is the
    viewer's own; all of it for nobody in particular.
    """

    project: Project
    viewer: Any = None
    only_own: bool = False

    def sessions(self) -> QuerySet[Session]:
        """Those of which something is told."""
        rows = Session.objects.standing().filter(project=self.project)
        if not self.only_own:
            return rows
        said = Message.objects.filter(session=OuterRef("pk"), author=self.viewer)
        spoken = Q(Exists(said), visibility=Visibility.PROJECT)
        return rows.filter(Q(creator=self.viewer) | spoken)

    def readable(self, path: str) -> Q:
        """That the session at `path` may be read word for word."""
        if self.viewer is None:
            return Q()
        own = Q(**{f"{path}creator": self.viewer})
        return own if self.only_own else own | Q(**{f"{path}visibility": Visibility.PROJECT})

    def of_sessions(self, rows: QuerySet, path: str = "session") -> QuerySet:
        """The rows of the sessions of which something is told."""
        sessions = self.sessions().order_by().values("pk")
        return rows.filter(**{"project": self.project, f"{path}__in": sessions})

    def messages(self) -> QuerySet[Message]:
        said = self.readable("session__")
        if self.only_own:
            shared = Q(session__visibility=Visibility.PROJECT)
            said |= shared & Q(author=self.viewer)
        return self.of_sessions(Message.objects.all()).filter(said)

    def of_messages(self, rows: QuerySet) -> QuerySet:
        """The rows of messages that stand and are told."""
        told = self.messages().filter(deleted_at=None).order_by().values("pk")
        return rows.filter(project=self.project, message__in=told)

    def own(self, rows: QuerySet, whose: str = "user") -> QuerySet:
        """Of rows that are the project's or a user's: the viewer's, and the project's."""
        rows = rows.filter(project=self.project)
        if self.viewer is None:
            return rows
        mine = Q(**{whose: self.viewer})
        return rows.filter(mine if self.only_own else mine | Q(**{whose: None}))

    def entries(self) -> QuerySet[Entry]:
        """As pages tell them: what waits for review and may quote a private session is its
        creator's.
        """
        rows = Entry.objects.filter(project=self.project)
        if self.viewer is None:
            return rows
        if self.only_own:
            return rows.filter(session__creator=self.viewer)
        unread = Q(session=None) | self.readable("session__")
        return rows.filter(~Q(state=State.PROPOSED) | unread)

    def sources(self) -> QuerySet[FactSource]:
        """What messages that are told tell of facts."""
        told = self.messages().order_by().values("pk")
        rows = self.own(FactSource.objects.all(), "fact__user")
        return rows.filter(message__in=told, entry__in=self.entries().order_by().values("pk"))

    def facts(self) -> QuerySet[Fact]:
        """Those given by hand, and those that such a message tells, with their earlier versions."""
        fact = Coalesce(OuterRef("earlier_of"), OuterRef("pk"))
        told = self.sources().filter(fact=fact)
        return self.own(Fact.objects.all()).filter(Q(by_hand=True) | Exists(told))

    def of_entries(self, rows: QuerySet) -> QuerySet:
        kept = self.entries().order_by().values("pk")
        return rows.filter(project=self.project, entry__in=kept)

    def earlier_texts(self) -> QuerySet[EntryRevision]:
        rows = self.of_entries(EntryRevision.objects.all())
        if self.viewer is None:
            return rows
        return rows.filter(Q(entry__session=None) | self.readable("entry__session__"))


@dataclass(frozen=True)
class Table:
    """One file of an export. `left_out` are the columns that stay behind; what is `whose` of
    nobody who is known where it is imported stays out there.
    """

    name: str
    model: type[Model]
    rows: Callable[[Extent], QuerySet]
    left_out: tuple[str, ...] = ()
    whose: tuple[str, ...] = ()

    @property
    def columns(self) -> list[Field]:
        return [
            field
            for field in self.model._meta.concrete_fields
            if field.name != "project" and field.name not in self.left_out
        ]


LEASE = ("lease_holder", "lease_until", "failures", "next_try_at", "last_error")
TABLES = (
    Table("sessions", Session, lambda extent: extent.sessions(), ("deleted_at",)),
    Table(
        "messages",
        Message,
        lambda extent: extent.messages(),
        ("stop_requested", "heartbeat_at"),
    ),
    Table("revisions", MessageRevision, lambda extent: extent.of_messages(_all(MessageRevision))),
    Table(
        "reactions",
        Reaction,
        lambda extent: extent.of_messages(_all(Reaction)),
        whose=("user",),
    ),
    Table(
        "attachments",
        Attachment,
        lambda extent: extent.of_messages(_all(Attachment)),
        ("file", "size", "sha256"),
    ),
    Table("cursors", Cursor, lambda extent: extent.of_sessions(_all(Cursor)), LEASE),
    Table("entries", Entry, lambda extent: extent.entries()),
    Table("entry_revisions", EntryRevision, lambda extent: extent.earlier_texts()),
    Table("entry_states", EntryState, lambda extent: extent.of_entries(_all(EntryState)), ("id",)),
    Table("blocks", Block, lambda extent: extent.own(_all(Block)), whose=("user",)),
    Table("facts", Fact, lambda extent: extent.facts(), whose=("user",)),
    Table("fact_sources", FactSource, lambda extent: extent.sources()),
    Table(
        "tombstones",
        Tombstone,
        # Users have other numbers elsewhere.
        lambda extent: Tombstone.objects.filter(project=extent.project).exclude(kind=Grave.USER),
    ),
)


# What belongs to a project and stays behind, and why; a test finds what is in neither list.
LEFT_OUT: dict[type[Model], str] = {
    Membership: "Who may do what is decided where it is imported; --members makes editors.",
    Token: "It opens this Strata.",
    Invitation: "It leads into this Strata.",
    SpentInvitation: "It is about a link into this Strata.",
    Bucket: "How much was asked of here.",
    IdempotencyKey: "What was asked of here, for a day.",
    Seen: "How far somebody has read here.",
    Import: "How a file came in here.",
    ImportedStretch: "What came in here with which file.",
    FileRemoval: "Bookkeeping of the work here.",
    Activity: "What was done here; it points by ids that an import renames.",
    Call: "What was paid here.",
    Chunk: "Cut anew from what was said.",
    Vector: "Made anew, by the embedder there.",
    Corpus: "Counted anew.",
    IndexCursor: "How far the index here has come.",
    RenderedBank: "Rendered anew.",
    Ladder: "Bookkeeping of the work here.",
    Nudge: "Bookkeeping of the work here.",
    EntriesChanged: "Bookkeeping of the work here.",
    Webhook: "Its receiver trusts this Strata's secret and reads from this address.",
    Delivery: "What was told from here.",
}


def _all(model: type[Model]) -> QuerySet:
    return model._default_manager.all()


def is_person(field: Field) -> bool:
    """Whether a column names a user; in a file that is a username."""
    return isinstance(field, ForeignKey) and field.related_model is _user_model()


def _user_model() -> type[Model]:
    from django.contrib.auth import get_user_model

    return get_user_model()


def setting_columns() -> Iterable[Field]:
    return (field for field in Project._meta.concrete_fields if field.name not in NOT_SETTINGS)


def schema() -> dict[str, Any]:
    """JSON Schema of a line of each file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {table.name: _schema_of(table.columns) for table in TABLES}
        | {"project": _schema_of(setting_columns())},
    }


def _schema_of(columns: Iterable[Field]) -> dict[str, Any]:
    properties = {field.name: _schema_of_column(field) for field in columns}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TYPES: dict[str, dict[str, Any]] = {
    "BooleanField": {"type": "boolean"},
    "DateTimeField": {"type": "string", "format": "date-time"},
    "DecimalField": {"type": "string", "pattern": r"^-?\d+(\.\d+)?$"},
    "FloatField": {"type": "number"},
    "JSONField": {},
    "UUIDField": {"type": "string", "format": "uuid"},
}


def _schema_of_column(field: Field) -> dict[str, Any]:
    kind = field.get_internal_type()
    if is_person(field):
        told: dict[str, Any] = {"type": "string", "description": "A username."}
    elif isinstance(field, ForeignKey) or kind == "OneToOneField":
        told = {"type": "string", "format": "uuid"}
    elif "Integer" in kind or kind == "BigAutoField":
        told = {"type": "integer"}
    else:
        told = dict(_TYPES.get(kind, {"type": "string"}))
    if field.choices:
        told["enum"] = [value for value, _ in field.flatchoices] + ([""] if field.blank else [])
    if field.null:
        told = {"anyOf": [told, {"type": "null"}]}
    if field.help_text:
        told["description"] = str(field.help_text)
    return told
