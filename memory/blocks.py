"""Blocks: working memory that people write, and that stands in every prompt of the project.

Each of the two shelves, the project's and a user's own, has its place in the prompt: what is
written there may not grow beyond the project's `blocks_max_tokens`.
"""

from uuid import UUID

from django.db import transaction
from django.db.models import Max, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import tokens
from chat.storable import storable
from memory import fence
from memory.models import Block, Reason, Verb
from memory.models.activity import note
from memory.models.blocks import LONGEST_BLOCK
from projects.models import Project


class Refused(Exception):
    """A change that cannot be made; the text says why, for people."""


class Stale(Exception):
    """Somebody changed the block since it was read."""

    def __init__(self, block: Block) -> None:
        super().__init__(f"The block is at version {block.version} now.")
        self.block = block


def rendered(name: str, content: str) -> str:
    """As a block stands in a prompt: its name, and its text below, quoted."""
    return f"[{name}]\n{fence.quote(content)}\n"


@transaction.atomic
def put(project: Project, user, name: str, content: str, by, version: int | None = None) -> Block:
    """Sets the block `name` to `content`, made at the end of its shelf if it is not there.

    `user` is whose own block it is, None for the project's; `by` writes it. `version` is the one
    that was read, 0 for a block that was not there, None when any will do. Raises Stale, and
    Refused when the shelf would hold too much.
    """
    _lock(project)
    block = _find(project, user, name)
    _check(block, version)
    return _write(project, user, block, name, content, by)


@transaction.atomic
def append(project: Project, user, name: str, text: str, by) -> Block:
    """Adds `text` as lines of its own to the block `name`, made if it is not there. Raises
    Refused when the shelf would hold too much.
    """
    _lock(project)
    block = _find(project, user, name)
    before = block.content if block else ""
    content = f"{before.rstrip()}\n{text}" if before.strip() else text
    return _write(project, user, block, name, content, by)


@transaction.atomic
def move(block: Block, position: int, by) -> None:
    """Puts `block` at `position` among the blocks of its shelf, counted from 0; the others close
    ranks. A position beyond the end is the end.
    """
    _lock(block.project)
    shelf = list(_shelf(block.project, block.user_id).in_order())
    others = [one for one in shelf if one.pk != block.pk]
    others.insert(position, block)
    for place, one in enumerate(others):
        Block.objects.filter(pk=one.pk).exclude(position=place).update(position=place)
    block.position = others.index(block)
    _note(Verb.BLOCK_KEPT, block, by)


@transaction.atomic
def remove(block: Block, by, reason: str = Reason.OTHER, version: int | None = None) -> None:
    """Deletes `block` for good. Raises Stale."""
    _lock(block.project)
    there = Block.objects.filter(pk=block.pk).first()
    if there is None:
        return
    _check(there, version)
    there.delete()
    _note(Verb.BLOCK_GONE, block, by, reason)


def _lock(project: Project) -> None:
    """One change of a project's blocks at a time, as their sum is checked."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)


def _shelf(project: Project, user):
    return Block.objects.filter(project=project, user=user)


def _find(project: Project, user, name: str) -> Block | None:
    return _shelf(project, user).filter(name=name).first()


def _check(block: Block | None, version: int | None) -> None:
    if version is not None and block is not None and block.version != version:
        raise Stale(block)
    if version and block is None:
        raise Refused(_("This block is not here any more."))


def _write(project: Project, user, block: Block | None, name: str, content: str, by) -> Block:
    content = storable(content).replace("\r\n", "\n")
    if len(content) > LONGEST_BLOCK:
        raise Refused(_("A block has at most %(most)s characters.") % {"most": LONGEST_BLOCK})
    if block is not None and block.content == content:
        return block
    taken = tokens.count(rendered(name, content))
    others = _shelf(project, user).exclude(name=name)
    found = others.aggregate(tokens=Sum("tokens", default=0), last=Max("position", default=-1))
    if found["tokens"] + taken > project.blocks_max_tokens:
        raise Refused(
            _("Blocks may take %(most)s tokens together; these would take %(taken)s.")
            % {"most": project.blocks_max_tokens, "taken": found["tokens"] + taken}
        )
    if block is None:
        block = Block(project=project, user=user, name=name, position=found["last"] + 1)
        block.version, block.written_by = 0, by
    elif block.written_by_id != by.pk:
        block.written_by = None
    block.content, block.tokens = content, taken
    block.version += 1
    block.updated_at = timezone.now()
    block.save()
    _note(Verb.BLOCK_KEPT, block, by)
    return block


def _note(verb: Verb, block: Block, by, reason: str = "") -> None:
    related: list[UUID] = [block.pk]
    note(block.project_id, verb, by=by, related=related, reason=reason)
