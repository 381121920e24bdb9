"""Models of projects, members, invitations, API tokens, idempotency keys and rate limits."""

from projects.core.models import IdModel, ProjectScopedModel, delete_rows, in_project
from projects.models.idempotency import IdempotencyKey
from projects.models.invitations import Invitation, InvitationStatus, SpentInvitation
from projects.models.limits import SpendingLimit
from projects.models.members import MemberRole, Membership
from projects.models.projects import Project, validate_model_name
from projects.models.server import ServerModels
from projects.models.tokens import SCOPES, Bucket, Token
