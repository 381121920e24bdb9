"""Who: projects, their members, the tokens that open them, and what was done with those."""

from projects.models.idempotency import IdempotencyKey
from projects.models.members import Membership, Role
from projects.models.projects import Project, validate_model_name
from projects.models.throttles import Bucket
from projects.models.tokens import SCOPES, Token

__all__ = [
    "SCOPES",
    "Bucket",
    "IdempotencyKey",
    "Membership",
    "Project",
    "Role",
    "Token",
    "validate_model_name",
]
