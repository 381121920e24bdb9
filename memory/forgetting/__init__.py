"""Forgetting: what is forgotten is gone from every store at once, with all that was made of it.

One transaction finds it, locks it, removes it, marks its graves, and says what went from where.
What had other sources too is withheld, its text gone, until the next cycle writes it from those.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from django.db import connection, transaction
from django.utils.translation import gettext as _

from chat import files
from memory.forgetting import graves
from memory.forgetting.finding import find
from memory.forgetting.receipts import Receipt, draw_up, phrases_of
from memory.forgetting.repeating import told_of
from memory.forgetting.scope import Scope
from memory.forgetting.stores import STORES
from memory.models import Reason, Verb
from memory.models.activity import note
from projects.identifiers import new_id
from projects.models import Project

__all__ = ["Receipt", "Refused", "Scope", "forget", "preview"]


class Refused(Exception):
    """A wish that cannot be met; the text says why, for people."""


def forget(project: Project, scope: Scope, by=None, reason: str = Reason.OTHER) -> Receipt:
    """Forgets what `scope` says, and returns the receipt. Raises Refused.

    `by` is the user who wants it, None for Strata itself. What is gone already is no error: the
    receipt then counts nothing.
    """
    with transaction.atomic():
        receipt = _apply(project, scope, by, reason, for_good=True)
    assert receipt.id is not None
    return replace(receipt, awaiting_files=files.left_by(project.pk, receipt.id))


def preview(project: Project, scope: Scope, by=None) -> Receipt:
    """The receipt that forgetting `scope` would give; nothing is changed. Raises Refused.

    It is carried out and rolled back, so it cannot differ from the deed.
    """
    with _undone():
        return _apply(project, scope, by, Reason.OTHER, for_good=False)


def _apply(project: Project, scope: Scope, by, reason: str, for_good: bool) -> Receipt:
    if scope.is_empty:
        raise Refused(_("Say what is to be forgotten: nothing was named."))
    # As importers do first: what is forgotten now is not brought in meanwhile.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    found = find(project, scope)
    phrases = phrases_of(project, found)
    told = told_of(project, found)
    # What tombstones name has its graves.
    buried = [] if scope.buried else graves.bury(project, found)
    act_id = new_id()
    with files.removed_by(act_id):
        removed = {store.name: store.remove(project, found) for store in STORES}
    # The database checks now what it would check at the end.
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    receipt = draw_up(project, found, removed, phrases, told)
    act = note(
        project.pk,
        Verb.FORGOTTEN,
        id=act_id,
        by=by,
        reason=reason,
        related=found.messages,
        count=len(found.messages),
        entry_id=scope.entry,
        fact_id=scope.fact,
        session_id=scope.session,
        message_id=scope.message,
        receipt=receipt.as_json(),
    )
    if not for_good:
        return receipt
    graves.write_down(graves.stones_of(buried))
    return receipt.signed(act)


@contextmanager
def _undone() -> Iterator[None]:
    """Whatever is written inside is rolled back."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
