"""What a reply was told of memory: the things in a prompt's receipt, as a reader may see them now.

A receipt holds ids, revisions and sizes and no words. These are read anew, so that what was
forgotten, hidden or made private since does not come back through the receipts of old replies.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Q, Subquery
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chat.access import sessions_for
from chat.models import Message
from chat.pages import url as url_of
from memory.access import entries_for
from memory.access import may_forget as may_forget_in
from memory.facts import facts_for
from memory.facts.attribution import attribution, source
from memory.layers.bank import SEPARATOR
from memory.layers.periods import Granularity
from memory.models import Block, Chunk, Entry, EntryRevision, Fact
from memory.templatetags.layers import layer, period
from projects.models import Membership
from projects.templatetags.translated import named

# Sections whose things are not remembered but said in the chat itself.
SAID_HERE = ("persona", "history", "message")
TITLES = {
    "persona": gettext_lazy("Who it is"),
    "blocks": gettext_lazy("Blocks"),
    "facts": gettext_lazy("What is held to be so"),
    "bank": gettext_lazy("What the project remembers"),
    "gists": gettext_lazy("Other chats, in short"),
    "details": gettext_lazy("Word for word, from other chats"),
    "history": gettext_lazy("This chat so far"),
    "message": gettext_lazy("The message it answers"),
}
# Of one excerpt or summary that is shown.
LONGEST = 600  # characters
LAYERS = {granularity.value for granularity in Granularity}


@dataclass(frozen=True)
class Thing:
    """One thing that was told. `kind` is its layer's name, or block, fact, or chunk; `when` its
    date or period; `source` is where it comes from, at `address`. `changed` where its text was
    another one then; `wrong`, `outdated`, `private` lead to what a reader may do about it.
    """

    kind: str
    tokens: int
    text: str
    when: str
    source: str
    address: str
    changed: bool = False
    wrong: str = ""
    outdated: str = ""
    private: str = ""


@dataclass(frozen=True)
class Part:
    """A section of the prompt, with the things in it. `gone` are those that nobody, or not this
    reader, may read any more.
    """

    name: str
    tokens: int
    things: Sequence[Thing] = ()
    gone: int = 0

    @property
    def title(self) -> Any:
        return TITLES.get(self.name, self.name)


def parts(receipt: Mapping[str, Any], member: Membership) -> list[Part]:
    """The sections of `receipt` as `member` may see what stood in them. Five queries at most."""
    sections: list[Mapping[str, Any]] = receipt.get("sections", [])
    items = [item for section in sections for item in section["items"]]
    found = _Found(member, items)
    return [_part(section, found) for section in sections]


def _part(section: Mapping[str, Any], found: "_Found") -> Part:
    name, size = section["name"], section["tokens"]
    if name in SAID_HERE:
        return Part(name, size)
    things = [found.thing(item) for item in section["items"]]
    shown = [thing for thing in things if thing is not None]
    return Part(name, size, shown, len(things) - len(shown))


class _Found:
    """The rows behind the items of a receipt."""

    def __init__(self, member: Membership, items: Iterable[Mapping[str, Any]]) -> None:
        self.member, self.slug = member, member.project.slug
        of: dict[str, list[Mapping[str, Any]]] = {}
        for item in items:
            kind = "entry" if item["kind"] in (*LAYERS, "gist") else item["kind"]
            of.setdefault(kind, []).append(item)
        self.entries = self._entries(of.get("entry", ()))
        self.before = self._earlier(of.get("entry", ()))
        self.facts = self._facts(of.get("fact", ()))
        self.blocks = self._blocks(of.get("block", ()))
        self.excerpts = self._excerpts(of.get("chunk", ()))

    def _entries(self, items: Sequence[Mapping[str, Any]]) -> Mapping[UUID, Entry]:
        rows = entries_for(self.member).filter(withheld=False)
        return rows.in_bulk(_ids(items)) if items else {}

    def _earlier(self, items: Sequence[Mapping[str, Any]]) -> Mapping[tuple[UUID, int], str]:
        """The texts that were told, of entries that have another one by now."""
        other = [
            Q(entry=item["id"], revision=item["revision"])
            for item in items
            if (entry := self.entries.get(UUID(item["id"]))) and entry.revision != item["revision"]
        ]
        if not other:
            return {}
        rows = EntryRevision.objects.filter(reduce(or_, other), project=self.member.project)
        return {(one.entry_id, one.revision): one.summary for one in rows}

    def _facts(self, items: Sequence[Mapping[str, Any]]) -> Mapping[UUID, Fact]:
        """Each with its `source`."""
        rows = facts_for(self.member).annotate(source=source())
        return rows.in_bulk(_ids(items)) if items else {}

    def _blocks(self, items: Sequence[Mapping[str, Any]]) -> Mapping[UUID, Block]:
        if not items:
            return {}
        mine = Q(user=None) | Q(user=self.member.user)
        return Block.objects.filter(mine, project=self.member.project).in_bulk(_ids(items))

    def _excerpts(self, items: Sequence[Mapping[str, Any]]) -> Mapping[UUID, Chunk]:
        """Those of chats that the reader may open, each with `message`, the id of its first."""
        if not items:
            return {}
        first = Message.objects.filter(session=OuterRef("session"), seq=OuterRef("first_seq"))
        rows = Chunk.objects.filter(
            project=self.member.project, session__in=sessions_for(self.member.user)
        )
        rows = rows.annotate(message=Subquery(first.values("pk")[:1])).select_related("session")
        return rows.defer("terms", "pieces").in_bulk(_ids(items))

    def thing(self, item: Mapping[str, Any]) -> Thing | None:
        """None for what is gone, or not for this reader."""
        kind = item["kind"]
        if kind == "chunk":
            chunk = self.excerpts.get(UUID(item["id"]))
            return self._excerpt(chunk, item) if chunk else None
        if kind == "fact":
            fact = self.facts.get(UUID(item["id"]))
            return self._fact(fact, item) if fact else None
        if kind == "block":
            block = self.blocks.get(UUID(item["id"]))
            return self._block(block, item) if block else None
        entry = self.entries.get(UUID(item["id"]))
        return self._entry(entry, item) if entry else None

    def _entry(self, entry: Entry, item: Mapping[str, Any]) -> Thing:
        address = self._url("entry", entry.pk)
        told = self.before.get((entry.pk, item["revision"]), entry.summary)
        acts = self._acts(f"{address}?edit#edit", told, f"entry={entry.pk}", entry.session)
        return Thing(
            entry.granularity,
            item["tokens"],
            told[:LONGEST],
            period(entry),
            named(entry.session.label) if entry.session else layer(entry.granularity),
            address,
            changed=entry.revision != item["revision"],
            **acts,
        )

    def _fact(self, fact: Fact, item: Mapping[str, Any]) -> Thing:
        address = self._url("fact", fact.pk)
        again = urlencode({"subject": fact.subject, "predicate": fact.predicate})
        acts = self._acts(f"{address}?edit#edit", "", f"fact={fact.pk}")
        if acts:
            acts["outdated"] = f"{self._url('facts')}?add&{again}#add"
        return Thing(
            "fact",
            item["tokens"],
            fact.text,
            _("since %(day)s") % {"day": self._day(fact.valid_from)},
            SEPARATOR.join(map(named, _names(fact))) or _("fact"),
            address,
            changed=fact.version != item["revision"],
            **acts,
        )

    def _block(self, block: Block, item: Mapping[str, Any]) -> Thing:
        address = self._url("memory-blocks")
        return Thing(
            "block",
            item["tokens"],
            block.content[:LONGEST],
            block.name,
            _("block"),
            address,
            changed=block.version != item["revision"],
            wrong=address if self.member.may_write else "",
        )

    def _excerpt(self, chunk: Chunk, item: Mapping[str, Any]) -> Thing:
        session, message = chunk.session, getattr(chunk, "message", None)
        assert session is not None
        chat = url_of(session)
        acts = {}
        if message:
            wrong = reverse("message-edit", args=[message])
            acts = self._acts(wrong, chunk.text, f"message={message}", session)
        return Thing(
            "conversation",
            item["tokens"],
            chunk.text[:LONGEST],
            self._day(chunk.occurred_at),
            named(chunk.speaker or session.label),
            f"{chat}#note-{message}"
            if session.is_notes
            else f"{chat}?through={chunk.last_seq}#m{chunk.first_seq}",
            changed=False,
            **acts,
        )

    def _acts(self, wrong: str, text: str, which: str, session: Any = None) -> dict[str, str]:
        """Where one goes with what is wrong, outdated or private; nowhere for who only reads."""
        if not self.member.may_write:
            return {}
        first_line = next(iter(text.strip(" -•\n").splitlines()), "")
        add = urlencode({"object": first_line[:200]})
        may_forget = may_forget_in(self.member, session)
        return {
            "wrong": wrong,
            "outdated": f"{self._url('facts')}?add&{add}#add",
            "private": f"{self._url('memory-forget')}?{which}" if may_forget else "",
        }

    def _day(self, moment: Any) -> str:
        local = timezone.localtime(moment, self.member.project.zone)
        return date_format(local, "DATE_FORMAT")

    def _url(self, name: str, *more: object) -> str:
        return reverse(name, args=[self.slug, *more])


def _names(fact: Fact) -> list[str]:
    told = getattr(fact, "source", None)
    return attribution(told, fact.by_hand, fact.version, fact.written_by)


def _ids(items: Iterable[Mapping[str, Any]]) -> list[UUID]:
    return [UUID(item["id"]) for item in items]
