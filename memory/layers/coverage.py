"""Which messages a summary is written from, and how many of them wait for one."""

from django.db.models import Count, Q, Sum

from chat.models import Message, Role, Session, Status
from memory.models import Cursor

# A failed reply says nothing; a stopped or interrupted one says what it got to say.
SAYING = (Status.COMPLETE, Status.STOPPED, Status.INTERRUPTED)
SPOKEN = (Role.USER, Role.ASSISTANT)
# As `contributes`, in SQL. A copy in a fork is remembered where its original is.
CONTRIBUTING = Q(
    remembered=True, deleted_at=None, copied_from=None, status__in=SAYING, role__in=SPOKEN
) & ~Q(text="")


def contributes(message: Message) -> bool:
    """Whether a summary is written from this message, as far as its own row tells."""
    return bool(
        message.remembered
        and message.text
        and message.status in SAYING
        and message.role in SPOKEN
        and message.deleted_at is None
        and message.copied_from_id is None
    )


def recount(session: Session, beyond: int, through: int | None = None) -> None:
    """Sets the counts of the session's cursor to what contributes beyond the seq `beyond`, and
    the cursor itself to `through` if that is given. The session's row is locked.
    """
    rows = session.messages.filter(CONTRIBUTING, project=session.project_id, seq__gt=beyond)
    left = rows.aggregate(count=Count("pk"), tokens=Sum("tokens", default=0))
    moved = {} if through is None else {"summarised_through": through}
    Cursor.objects.filter(project=session.project_id, pk=session.pk).update(
        unsummarised_messages=left["count"], unsummarised_tokens=left["tokens"], **moved
    )
