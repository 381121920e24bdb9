"""Find the blocks and files of a forget request."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Q

from memory.forgetting.scope import ForgetScope, lock
from memory.models import File
from projects.models import Project


def forgotten_blocks(project: Project, scope: ForgetScope) -> set[UUID]:
    """Return the blocks to delete, locked.

    A `user` in `scope` selects that user's own blocks, and shared blocks that only that user wrote.
    `before` selects the blocks whose last change was before that moment.
    """
    rows = project.blocks.all()
    if scope.tombstones:
        return lock(rows.filter(pk__in=scope.tombstones.blocks))
    if scope.names_object or (scope.user is None and scope.before is None):
        return set()
    if scope.user is not None:
        rows = rows.filter(Q(user=scope.user) | Q(user=None, written_by=scope.user))
    if scope.before is not None:
        rows = rows.filter(updated_at__lt=scope.before)
    return lock(rows)


def named_files(scope: ForgetScope) -> Q:
    """Return the condition for the files that `scope` selects itself: the named file, files that
    `user` added, or files whose latest version was added `before` that moment.
    """
    if scope.tombstones:
        return Q(pk__in=scope.tombstones.files)
    if scope.file is not None:
        return Q(pk=scope.file)
    if scope.names_object or (scope.user is None and scope.before is None):
        return Q(pk__in=())
    chosen = Q()
    if scope.user is not None:
        chosen &= Q(added_by=scope.user)
    if scope.before is not None:
        chosen &= Q(changed_at__lt=scope.before)
    return chosen


def forgotten_files(project: Project, scope: ForgetScope, sessions: Iterable[UUID]) -> set[UUID]:
    """Find and lock the files to delete: those of `sessions`, and those that `scope` selects."""
    rows = File.objects.filter(Q(session__in=sessions) | named_files(scope), project=project)
    return lock(rows)
