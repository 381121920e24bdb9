"""The users who wrote the texts of a project, by id or by username."""

from functools import reduce
from operator import or_
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from chat.models import Attachment, Import, Message, Reaction, SavedPrompt
from memory.forgetting.scope import lock
from memory.models import Block, Entry, EntryRevision, Fact, FileRevision
from memory.moderation import entry_operations
from projects.models import Membership, Project

# The columns that name the users of whom a project contains something, by their id or username.
USER_COLUMNS: tuple[tuple[type[Any], str, str], ...] = (
    (Membership, "user", "pk"),
    (Message, "author", "pk"),
    (FileRevision, "added_by", "pk"),
    (Block, "user", "pk"),
    (Block, "written_by", "pk"),
    (Entry, "written_by", "username"),
    (EntryRevision, "written_by", "username"),
    (Fact, "user", "pk"),
    (Fact, "written_by", "username"),
    (SavedPrompt, "user", "pk"),
    (SavedPrompt, "written_by", "pk"),
    (Reaction, "user", "pk"),
    (Attachment, "uploaded_by", "pk"),
    (Import, "user", "pk"),
)

# Appended to the name of a deleted user. No username contains it.
DELETED = " (deleted)"


@transaction.atomic
def rename_writer(previous: str, name: str) -> None:
    """Replace the username `previous` in the texts that this user wrote by hand, in all projects.

    Otherwise, forgetting all text of the user would miss them, and they would belong to the next
    account with the name `previous`. Texts of models with such a name are not changed.
    """
    if previous in settings.ACCOUNT_USERNAME_BLACKLIST:
        return
    # In the order of docs/architecture.md: entries before facts.
    entry_operations.lock(Entry.objects.filter(written_by=previous))
    lock(Fact.objects.filter(written_by=previous))
    for model, column, key in USER_COLUMNS:
        if key == "username":
            rows = model._default_manager.filter(**{column: previous})
            rows.update(**{column: name})


def find_user(project: Project, username: str) -> Any | None:
    """Return the user with this name if they are a member, or if the project contains something of
    theirs. Other users are treated like names without an account, so that accounts cannot be
    discovered.
    """
    known = [
        Q(Exists(model._default_manager.filter(project=project, **{column: OuterRef(key)})))
        for model, column, key in USER_COLUMNS
    ]
    return get_user_model().objects.filter(reduce(or_, known), username=username).first()
