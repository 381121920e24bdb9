"""Who: projects, members, who is invited, the tokens that open them, what was done with those."""

from projects.models.belonging import OfProject, remove
from projects.models.idempotency import IdempotencyKey
from projects.models.invitations import Invitation, SpentInvitation, Standing
from projects.models.members import Membership, Role
from projects.models.projects import Project, validate_model_name
from projects.models.throttles import Bucket
from projects.models.tokens import SCOPES, Token

__all__ = [
    "SCOPES",
    "Bucket",
    "IdempotencyKey",
    "Invitation",
    "Membership",
    "OfProject",
    "Project",
    "Role",
    "SpentInvitation",
    "Standing",
    "Token",
    "remove",
    "validate_model_name",
]
