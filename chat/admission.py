"""Who may go on listening: a stream outlives the request that let its reader in."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from chat.models import Session, Visibility
from projects.models import Membership, Project, Token


@dataclass(frozen=True)
class Grant:
    """On what account a stream was opened: its reader, where it leads, and the token shown.

    Without a session, the project alone counts; without a token, it is a page's.
    """

    user: int
    project: UUID
    session: UUID | None = None
    # Its digest.
    token: str | None = None

    @classmethod
    def of(cls, request, place: Session | Project) -> "Grant":
        """That of a request of a page or a program which was let in to `place`."""
        token = getattr(request, "auth", None)
        shown = None if token is None else token.pk
        if isinstance(place, Project):
            return cls(request.user.pk, place.pk, None, shown)
        return cls(request.user.pk, place.project_id, place.pk, shown)


def withdrawn(grants: Collection[Grant]) -> frozenset[Grant]:
    """Those of `grants` that hold no more: the token is revoked or expired, the user inactive or
    no member, the session deleted or hidden from them. At most three queries for any number.
    """
    if not grants:
        return frozenset()
    members = set(
        Membership.objects.filter(
            user__in={one.user for one in grants},
            user__is_active=True,
            project__in={one.project for one in grants},
        ).values_list("user_id", "project_id")
    )
    tokens = _tokens({one.token for one in grants if one.token is not None})
    sessions = _sessions({one.session for one in grants if one.session is not None})

    def holds(one: Grant) -> bool:
        return (
            (one.user, one.project) in members
            and (one.token is None or tokens.get(one.token, one) in (None, one.project))
            and (one.session is None or sessions.get(one.session, one) in (None, one.user))
        )

    return frozenset(one for one in grants if not holds(one))


def _tokens(digests: set[str]) -> dict[str, UUID | None]:
    """The tokens among these that are valid, with the one project that they open."""
    valid = Token.objects.valid().filter(pk__in=digests)
    return dict(valid.values_list("pk", "project_id")) if digests else {}


def _sessions(ids: set[UUID]) -> dict[UUID, int | None]:
    """The sessions among these that stand, with the one user who sees them, None for all."""
    rows = Session.objects.standing().filter(pk__in=ids)
    return {
        pk: creator or 0 if visibility == Visibility.PRIVATE else None
        for pk, visibility, creator in rows.values_list("pk", "visibility", "creator_id")
    }
