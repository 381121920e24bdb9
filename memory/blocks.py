"""Blocks: texts that people write themselves and that are part of every prompt.

A shelf is the set of blocks of a project, or of one user in the project. The blocks of a shelf may
have at most `blocks_max_tokens` tokens together, a setting of the project.
"""

from django.db import transaction
from django.db.models import Max, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chat.prompt import quoting
from memory.models import ActivityVerb, Block, ModerationReason
from memory.models.activity import record_activity
from memory.models.blocks import MAX_BLOCK_CHARS
from projects.core import token_counting
from projects.core.errors import InvalidInputError, StaleVersionError
from projects.core.text import storable
from projects.models import Project


class StaleBlockError(StaleVersionError):
    """Somebody changed the block after the caller read it; `block` is its current version."""

    def __init__(self, block: Block) -> None:
        super().__init__(f"The block is at version {block.version} now.")
        self.block = block


class BlockDeletedError(StaleVersionError):
    """The block that the caller read was deleted."""

    default_message = gettext_lazy("This pinned text was deleted.")


def render_block(name: str, content: str) -> str:
    """Return the block as in prompts: its name, and below it the quoted content."""
    return f"[{name}]\n{quoting.quote(content)}\n"


@transaction.atomic
def put(project: Project, user, name: str, content: str, by, version: int | None = None) -> Block:
    """Set the block `name` to `content`. A new block is placed at the end of its shelf.

    `user` is the owner of a personal block, and None for a block of the project. `by` is the
    author. `version` is the version that the caller read, 0 for a new block, and None to overwrite
    any version. Raises `StaleBlockError`, `BlockDeletedError`, or `InvalidInputError` if the shelf
    would exceed its token limit.
    """
    _lock(project)
    block = project.blocks.of(user).filter(name=name).first()
    _check_version(block, version)
    return _write(project, user, block, name, content, by, field="content")


@transaction.atomic
def append(project: Project, user, name: str, text: str, by, version: int | None = None) -> Block:
    """Append `text` as new lines to the block `name`. The block is created if it does not exist.

    `version` and the errors are as for `put`.
    """
    _lock(project)
    block = project.blocks.of(user).filter(name=name).first()
    _check_version(block, version)
    before = block.content if block else ""
    content = f"{before.rstrip()}\n{text}" if before.strip() else text
    return _write(project, user, block, name, content, by, field="append")


@transaction.atomic
def move(block: Block, position: int, by, version: int | None = None) -> None:
    """Move `block` to `position` on its shelf, counted from 0. A larger number means the end.

    A block that was deleted in the meantime is not moved. Raises `StaleBlockError` if the block has
    changed since `version`.
    """
    _lock(block.project)
    shelf = list(block.project.blocks.of(block.user_id).in_order())
    if block not in shelf:
        return
    _check_version(shelf[shelf.index(block)], version)
    ordered = [other for other in shelf if other.pk != block.pk]
    ordered.insert(position, block)
    for index, row in enumerate(ordered):
        Block.objects.filter(pk=row.pk).exclude(position=index).update(position=index)
    block.position = ordered.index(block)
    _record(ActivityVerb.BLOCK_WRITTEN, block, by)


@transaction.atomic
def remove(
    block: Block, by, reason: str = ModerationReason.OTHER, version: int | None = None
) -> None:
    """Delete `block` permanently. Raises `StaleBlockError` if it has changed since `version`."""
    _lock(block.project)
    current = Block.objects.filter(pk=block.pk).first()
    if current is not None:
        _check_version(current, version)
        current.delete()
        _record(ActivityVerb.BLOCK_DELETED, block, by, reason)


def _lock(project: Project) -> None:
    """Serialise changes of a project's blocks, because the sum of their tokens is limited."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)


def _check_version(block: Block | None, version: int | None) -> None:
    if version and block is None:
        raise BlockDeletedError
    if version is not None and block is not None and block.version != version:
        raise StaleBlockError(block)


def _write(
    project: Project, user, block: Block | None, name: str, content: str, by, field: str
) -> Block:
    content = storable(content).replace("\r\n", "\n")
    if len(content) > MAX_BLOCK_CHARS:
        message = _("Pinned text can have at most %(most)s characters.") % {"most": MAX_BLOCK_CHARS}
        raise InvalidInputError(message, field=field)
    if block is not None and block.content == content:
        return block
    tokens = token_counting.count(render_block(name, content))
    others = project.blocks.of(user).exclude(name=name)
    shelf = others.aggregate(tokens=Sum("tokens", default=0), last=Max("position", default=-1))
    # After the limit was lowered, a block can still be shortened.
    is_longer = tokens > (block.tokens if block else 0)
    if is_longer and shelf["tokens"] + tokens > project.blocks_max_tokens:
        message = _("Pinned text can use %(most)s tokens in total. This would be %(taken)s.") % {
            "most": project.blocks_max_tokens,
            "taken": shelf["tokens"] + tokens,
        }
        raise InvalidInputError(message, field=field)
    if block is None:
        block = Block(project=project, user=user, name=name, position=shelf["last"] + 1)
        block.version, block.written_by = 0, by
    elif block.written_by_id != by.pk:
        block.written_by = None
    block.content, block.tokens = content, tokens
    block.version += 1
    block.updated_at = timezone.now()
    block.save()
    _record(ActivityVerb.BLOCK_WRITTEN, block, by)
    return block


def _record(verb: ActivityVerb, block: Block, by, reason: str = "") -> None:
    record_activity(block.project_id, verb, by=by, related=[block.pk], reason=reason)
