"""What a wish to forget names by an id: an id that was mistyped should not look forgotten."""

from typing import Any

from chat.models import Import, Message, Session
from memory.forgetting.scope import Scope
from memory.models import Entry, Fact, Grave, Tombstone
from projects.models import Project

_THINGS: dict[str, tuple[str, type[Any], Grave]] = {
    "session": ("session", Session, Grave.SESSION),
    "message": ("message", Message, Grave.MESSAGE),
    "entry": ("entry", Entry, Grave.ENTRY),
    "fact": ("fact", Fact, Grave.RECORD),
    "upload": ("import", Import, Grave.UPLOAD),
}


def missing(project: Project, scope: Scope) -> str:
    """What `scope` names and `project` neither has nor has forgotten by that name, in words for
    programs; empty when there is nothing of the kind.
    """
    for name, (called, model, grave) in _THINGS.items():
        pk = getattr(scope, name)
        if pk is None or model.objects.filter(project=project, pk=pk).exists():
            continue
        stones = Tombstone.objects.filter(project=project, kind=grave, subject=str(pk))
        if not stones.exists():
            return f"There is no such {called} in this project."
    return ""
