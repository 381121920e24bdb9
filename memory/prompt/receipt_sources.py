"""The sources in the receipt of a prompt, with the texts that the reader may see now.

A receipt (`Message.receipt`, created by `Prompt.receipt()` in `chat/prompt/types.py`) contains ids,
revisions and sizes, but no texts. Texts are read from the database. Therefore the receipt of an old
reply does not show text that has since been forgotten, hidden or made private.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Prefetch, Q, QuerySet, Subquery
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chat.links import session_url, source_url
from chat.models import Message
from chat.permissions import sessions_for
from chat.prompt.types import source_group
from memory.facts import facts_for
from memory.facts.attribution import attribution, source_subquery
from memory.files import access
from memory.files.passages import place
from memory.layers import lines
from memory.layers.bank import SEPARATOR
from memory.layers.line_sources import LinkedLine, link, open_sources
from memory.layers.lines import Line
from memory.layers.periods import LAYER_LABELS, Granularity, localized_label
from memory.models import Block, Chunk, Entry, EntryRevision, Fact, File, FilePassage, FileRevision
from memory.permissions import entries_for, may_forget, may_read_revisions
from projects.core.text import translate_name
from projects.models import Membership

ReceiptItem = Mapping[str, Any]
# Sections that consist of the chat itself, and so have no sources in memory.
CHAT_SECTIONS = ("persona", "history", "message")
TITLES = {
    "persona": gettext_lazy("Instructions"),
    "blocks": gettext_lazy("Pinned text"),
    "facts": gettext_lazy("Facts"),
    "bank": gettext_lazy("Memories"),
    "matching_facts": gettext_lazy("Facts about this message"),
    "gists": gettext_lazy("Summaries of other chats"),
    "details": gettext_lazy("Quotes from other chats"),
    "history": gettext_lazy("This chat so far"),
    "message": gettext_lazy("Your message"),
    "program": gettext_lazy("Instructions of the API client"),
    "search_memory": gettext_lazy("Found by search"),
    "read_chat": gettext_lazy("Read in a chat"),
    "files": gettext_lazy("Files"),
    "search_files": gettext_lazy("Found in files"),
    "read_file": gettext_lazy("Read in a file"),
}
MAX_TEXT_CHARS = 600
# The kinds of items that refer to entries.
ENTRY_KINDS = ("gist", *(granularity.value for granularity in Granularity))


@dataclass(frozen=True)
class ReceiptSource:
    """One source. `kind` is the layer of an entry, or block, fact or conversation. `when` is its
    date or period. `source` is its origin, with the page `address`.

    `lines` are the lines of an entry that the prompt contained, with their source messages.
    `line_count` is the number of all lines of the entry.

    `changed` is true if the prompt contained an earlier text. The other URLs lead to forms that
    correct the source, replace it by a newer fact, or forget it; a URL is empty if the reader is
    not permitted to do that. `key` identifies an entry or fact that the reader may change on the
    page. `group` is one of SOURCE_GROUPS.
    """

    kind: str
    tokens: int
    text: str
    when: str
    source: str
    address: str
    changed: bool = False
    correct_url: str = ""
    replace_url: str = ""
    forget_url: str = ""
    lines: Sequence[LinkedLine] = ()
    line_count: int = 0
    key: str = ""
    group: str = "memory"

    @property
    def texts(self) -> list[str]:
        """The lines that the prompt contained."""
        return [item.line.shown for item in self.lines] or [self.text]


@dataclass(frozen=True)
class ReceiptSection:
    """A section of the prompt with its sources. `unavailable` is the number of sources that were
    deleted or that this reader may not see.
    """

    name: str
    tokens: int
    sources: Sequence[ReceiptSource] = ()
    unavailable: int = 0

    @property
    def title(self) -> Any:
        return TITLES.get(self.name, self.name)


def readable_sections(receipt: Mapping[str, Any], member: Membership) -> list[ReceiptSection]:
    """Return the sections of `receipt` with the sources that `member` may see, in ≤ 7 queries."""
    sections: list[Mapping[str, Any]] = receipt.get("sections", [])
    listed = [[] if it["name"] in CHAT_SECTIONS else it["items"] for it in sections]
    reader = _SourceReader(member, [item for items in listed for item in items])
    readable: list[ReceiptSection] = []
    keys: set[str] = set()
    for section, items in zip(sections, listed, strict=True):
        sources = [source for item in items if (source := reader.source(item))]
        # The index of a line is only valid for one row of an entry, so only the first has a key.
        sources = [replace(it, key="") if it.key in keys else it for it in sources]
        keys.update(source.key for source in sources)
        unavailable = len(items) - len(sources)
        readable.append(ReceiptSection(section["name"], section["tokens"], sources, unavailable))
    return readable


class _SourceReader:
    """Loads the rows that the items of a receipt refer to, and describes them as sources."""

    def __init__(self, member: Membership, items: Sequence[ReceiptItem]) -> None:
        self.member = member
        project = member.project
        entries = [item for item in items if item["kind"] in ENTRY_KINDS]
        rows = entries_for(member).filter(withheld=False)
        self.entries: Mapping[UUID, Entry] = _in_bulk(rows, entries)
        self.earlier_texts = self._earlier_texts(entries)
        # Only of lines that the prompt contained: an entry may have a hundred others.
        shown = [
            line
            for item in entries
            if (entry := self.entries.get(UUID(item["id"])))
            for line in _read_lines(item, self._text_in_prompt(entry, item))[1]
        ]
        self.line_sources = open_sources(member.user, project, shown)
        facts = facts_for(member).with_ends().annotate(source=source_subquery())
        self.facts: Mapping[UUID, Fact] = _in_bulk(facts, items, "fact")
        blocks = Block.objects.visible_to(member)
        self.blocks: Mapping[UUID, Block] = _in_bulk(blocks, items, "block")
        # An excerpt is identified by its first message.
        first = Message.objects.filter(session=OuterRef("session"), seq=OuterRef("first_seq"))
        chunks = Chunk.objects.filter(project=project, session__in=sessions_for(member.user))
        chunks = chunks.annotate(message=Subquery(first.values("pk")[:1]))
        chunks = chunks.select_related("session").defer("terms", "pieces")
        self.chunks: Mapping[UUID, Chunk] = _in_bulk(chunks, items, "chunk")
        messages = Message.objects.filter(
            project=project, session__in=sessions_for(member.user), deleted_at=None
        ).select_related("author", "session__project")
        self.messages: Mapping[UUID, Message] = _in_bulk(messages, items, "message")
        visible = File.objects.visible_to(member.user).filter(project=project).values("pk")
        passages = FilePassage.objects.filter(project=project, revision__document__in=visible)
        passages = passages.select_related("revision__document__session")
        versions = FileRevision.objects.filter(project=project)
        passages = passages.prefetch_related(Prefetch("revision__document__revisions", versions))
        self.passages: Mapping[UUID, FilePassage] = _in_bulk(passages, items, "file")

    def _text_in_prompt(self, entry: Entry, item: ReceiptItem) -> Entry | EntryRevision:
        """Return the text that the prompt contained, or the current text if it was deleted."""
        return self.earlier_texts.get((entry.pk, item["revision"]), entry)

    def _earlier_texts(
        self, items: Sequence[ReceiptItem]
    ) -> Mapping[tuple[UUID, int], EntryRevision]:
        """Return, by revision, the prompt's texts of entries that have changed since. Of a private
        session, only the creator may see them.
        """
        changed = [
            Q(entry=item["id"], revision=item["revision"])
            for item in items
            if (entry := self.entries.get(UUID(item["id"])))
            and entry.revision != item["revision"]
            and may_read_revisions(self.member, entry)
        ]
        if not changed:
            return {}
        rows = EntryRevision.objects.filter(reduce(or_, changed), project=self.member.project)
        return {(row.entry_id, row.revision): row for row in rows}

    def source(self, item: ReceiptItem) -> ReceiptSource | None:
        """Return the source of an item, or None if it was deleted or the reader may not see it."""
        source = self._source(item)
        return source and replace(source, group=source_group(item["kind"]))

    def _source(self, item: ReceiptItem) -> ReceiptSource | None:
        pk = UUID(item["id"])
        if chunk := self.chunks.get(pk):
            return self._from_chunk(chunk, item)
        if message := self.messages.get(pk):
            return self._from_message(message, item)
        if passage := self.passages.get(pk):
            return self._from_passage(passage, item)
        if fact := self.facts.get(pk):
            return self._from_fact(fact, item)
        if block := self.blocks.get(pk):
            address = self._url("memory-blocks")
            return ReceiptSource(
                "block",
                item["tokens"],
                block.content[:MAX_TEXT_CHARS],
                block.name,
                _("pinned text"),
                address,
                changed=block.version != item["revision"],
                correct_url=address if self.member.may_write else "",
            )
        entry = self.entries.get(pk)
        return self._from_entry(entry, item) if entry else None

    def _from_entry(self, entry: Entry, item: ReceiptItem) -> ReceiptSource:
        address = self._url("entry", entry.pk)
        granularity = Granularity(entry.granularity)
        written = self._text_in_prompt(entry, item)
        every, shown = _read_lines(item, written)
        text = written.summary if shown is every else lines.as_text(shown)
        label = _("a file") if entry.file_id else ""
        if (session := entry.session) is not None:
            # All members may read the summary of a private chat, but not its title.
            is_own = session.creator_id == self.member.user_id
            label = translate_name(session.label if is_own else session.open_label)
        return ReceiptSource(
            entry.granularity,
            item["tokens"],
            text[:MAX_TEXT_CHARS],
            localized_label(granularity, entry.period_key),
            label or str(LAYER_LABELS[granularity]),
            address,
            changed=entry.revision != item["revision"],
            lines=[link(line, self.line_sources) for line in shown],
            line_count=len(every),
            key=self._key("entry", entry.pk, not every or entry.revision != item["revision"]),
            **self._action_urls(f"{address}?edit#edit", text, f"entry={entry.pk}", entry.session),
        )

    def _from_fact(self, fact: Fact, item: ReceiptItem) -> ReceiptSource:
        address = self._url("fact", fact.pk)
        actions = self._action_urls(f"{address}?edit#edit", "", f"fact={fact.pk}")
        if actions:
            known = urlencode({"subject": fact.subject, "predicate": fact.predicate})
            actions["replace_url"] = f"{self._url('facts')}?add&{known}#add"
        source = getattr(fact, "source", None)
        names = attribution(source)
        if fact.by_hand:
            names.append(_("added by %(by)s") % {"by": fact.written_by})
        elif fact.version > 1:
            names.append(_("changed by %(by)s") % {"by": fact.written_by})
        return ReceiptSource(
            "fact",
            item["tokens"],
            fact.text,
            self._validity(fact),
            SEPARATOR.join(map(translate_name, names)) or _("fact"),
            address,
            changed=fact.version != item["revision"],
            key=self._key("fact", fact.pk, fact.version != item["revision"]),
            **actions,
        )

    def _validity(self, fact: Fact) -> str:
        first, until = self._day(fact.valid_from), getattr(fact, "until", None)
        if until is not None and until <= timezone.now():
            return f"{first} – {self._day(until)}"
        return _("since %(day)s") % {"day": first}

    def _from_chunk(self, chunk: Chunk, item: ReceiptItem) -> ReceiptSource:
        session, message = chunk.session, getattr(chunk, "message", None)
        assert session is not None
        chat, actions = session_url(session), {}
        if message:
            correct = reverse("message-edit", args=[message])
            actions = self._action_urls(correct, chunk.text, f"message={message}", session)
        position = f"?through={chunk.last_seq}#m{chunk.first_seq}"
        return ReceiptSource(
            "conversation",
            item["tokens"],
            chunk.text[:MAX_TEXT_CHARS],
            self._day(chunk.occurred_at),
            translate_name(chunk.speaker or session.label),
            chat + (f"#note-{message}" if session.is_notes else position),
            **actions,
        )

    def _from_message(self, message: Message, item: ReceiptItem) -> ReceiptSource:
        session = message.session
        correct = reverse("message-edit", args=[message.pk])
        return ReceiptSource(
            "conversation",
            item["tokens"],
            message.text[:MAX_TEXT_CHARS],
            self._day(message.created_at),
            translate_name(message.speaker),
            source_url(message),
            changed=message.version != item["revision"],
            **self._action_urls(correct, message.text, f"message={message.pk}", session),
        )

    def _from_passage(self, passage: FilePassage, item: ReceiptItem) -> ReceiptSource:
        document = passage.revision.document
        forget_url = f"{self._url('memory-forget')}?file={document.pk}"
        return ReceiptSource(
            "file",
            item["tokens"],
            passage.text.strip()[:MAX_TEXT_CHARS],
            self._day(passage.revision.created_at),
            place(document.name, passage.label),
            access.passage_url(self.member.project, passage),
            changed=document.changed_at > passage.revision.created_at,
            forget_url=forget_url if access.may_forget(self.member, document) else "",
        )

    def _key(self, kind: str, pk: UUID, changed: bool) -> str:
        """Return the key of a row that the member may change on the page, else "". There is no key
        for a changed text, because its lines may differ.
        """
        return f"{kind}:{pk}" if self.member.may_write and not changed else ""

    def _action_urls(
        self, correct_url: str, text: str, selection: str, session: Any = None
    ) -> dict[str, Any]:
        """Return the URLs of actions on a source. They are empty for members who may only read."""
        if not self.member.may_write:
            return {}
        first_line = next(iter(text.strip(" -•\n").splitlines()), "")
        known = urlencode({"object": first_line[:200]})
        forget_url = f"{self._url('memory-forget')}?{selection}"
        return {
            "correct_url": correct_url,
            "replace_url": f"{self._url('facts')}?add&{known}#add",
            "forget_url": forget_url if may_forget(self.member, session) else "",
        }

    def _day(self, moment: Any) -> str:
        local = timezone.localtime(moment, self.member.project.zone)
        return date_format(local, "DATE_FORMAT")

    def _url(self, name: str, *args: object) -> str:
        return reverse(name, args=[self.member.project.slug, *args])


def _read_lines(
    item: ReceiptItem, written: Entry | EntryRevision
) -> tuple[Sequence[Line], Sequence[Line]]:
    """Return all lines of `written`, and those that the prompt contained.

    The prompt contained all lines if the receipt does not list lines. All are also returned if the
    lines have changed since, because the indexes in the receipt are no longer valid.
    """
    every = lines.from_json(written.lines)
    places = item.get("lines")
    unchanged = written.revision == item["revision"] and len(every) == item.get("of")
    if not isinstance(places, list) or not unchanged:
        return every, every
    return every, [line for place, line in enumerate(every) if place in places] or every


def _in_bulk(rows: QuerySet, items: Sequence[ReceiptItem], kind: str = "") -> dict[UUID, Any]:
    """Return the rows of the items (of one `kind`) by id. Without items, no query is made."""
    ids = [UUID(item["id"]) for item in items if item["kind"] == kind or not kind]
    return rows.in_bulk(ids) if ids else {}
