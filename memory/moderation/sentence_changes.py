"""Changes to single sentences of a project's memory: confirm, remove or edit them."""

from dataclasses import dataclass

from django.db import models
from django.utils.translation import gettext as _

from memory import blocks
from memory.facts.permissions import fact_for_reading
from memory.layers.lines import MARK
from memory.models import ActivityVerb, Block, Entry, Fact
from memory.models.activity import record_activity, record_entry_activity
from memory.moderation.receipt_changes import ReceiptAction, ReceiptChange, apply_change
from memory.permissions import entries_for
from projects.core.errors import InvalidInputError, NotFoundError, StaleVersionError
from projects.models import Membership


class SentenceAction(models.TextChoices):
    CONFIRM = "confirm"
    WRONG = "wrong"
    EDIT = "edit"


@dataclass(frozen=True)
class SentenceChange:
    """A change of one sentence. `key` identifies the source like `ReceiptSource.key`, or as
    `block:ID`. `version` and `place` are those of the `Sentence`. For an edit, `text` is the
    correct version.
    """

    key: str
    action: str
    version: int
    place: int = 0
    text: str = ""


def change_sentence(member: Membership, change: SentenceChange) -> str:
    """Apply the change. Return a sentence for the user. Raises DomainError."""
    if change.action not in SentenceAction.values:
        raise InvalidInputError(_("This action does not exist."))
    source = _source(member, change.key)
    version = source.revision if isinstance(source, Entry) else source.version
    if version != change.version:
        raise StaleVersionError(_("Someone changed this meanwhile. You see the new version."))
    if isinstance(source, Block):
        return _change_block(member, source, change)
    if change.action == SentenceAction.CONFIRM:
        if isinstance(source, Entry):
            record_entry_activity(source, ActivityVerb.CHECKED, by=member.user)
        else:
            record_activity(
                member.project.pk, ActivityVerb.CHECKED, by=member.user, fact_id=source.pk
            )
        return _("Confirmed.")
    is_edit = change.action == SentenceAction.EDIT
    action = ReceiptAction.CORRECT if is_edit else ReceiptAction.WRONG
    line = None
    if isinstance(source, Entry):
        lines = source.read_lines()
        if change.place >= len(lines):
            raise NotFoundError(_("This no longer exists."))
        line = lines[change.place]
    return apply_change(member, change.key, ReceiptChange(action, change.text, line))


def _source(member: Membership, key: str) -> Fact | Entry | Block:
    """Return the source if the member may see it. Raises NotFoundError, or Http404 for a fact."""
    kind, _colon, pk = key.partition(":")
    if kind == "fact":
        return fact_for_reading(member, pk)
    row: Entry | Block | None = None
    if kind == "entry":
        row = entries_for(member).filter(withheld=False, pk=pk).first()
    elif kind == "block":
        row = Block.objects.visible_to(member).filter(pk=pk).first()
    if row is None:
        raise NotFoundError(_("This no longer exists."))
    return row


def _change_block(member: Membership, block: Block, change: SentenceChange) -> str:
    """Replace or remove a line of pinned text. The block is removed with its last line."""
    text = " ".join(change.text.split())
    if change.action == SentenceAction.EDIT and not text:
        raise InvalidInputError(_("Enter the right version."), field="text")
    if change.action == SentenceAction.CONFIRM:
        # Pinned text needs no confirmation, because people write it.
        raise InvalidInputError(_("This action does not exist."))
    lines = block.content.splitlines()
    if change.place >= len(lines):
        raise NotFoundError(_("This no longer exists."))
    line = lines[change.place]
    # The mark of the line stays, unless the text has its own.
    mark = line.removesuffix(MARK.sub("", line)) if MARK.sub("", text) == text else ""
    new = [mark + text] if change.action == SentenceAction.EDIT else []
    lines[change.place : change.place + 1] = new
    content = "\n".join(lines)
    if not content.strip():
        blocks.remove(block, member.user, version=block.version)
        return _("Removed from the pinned text.")
    owner = member.user if block.user_id is not None else None
    blocks.put(member.project, owner, block.name, content, member.user, block.version)
    if change.action == SentenceAction.EDIT:
        return _("Corrected.")
    return _("Removed from the pinned text.")
