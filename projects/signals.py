"""Signals about members, invitations and archiving, sent inside the transaction of the change.

`by` is the acting user. It is None for Strata itself, such as a management command.
"""

from django.dispatch import Signal

# member, by: the new Membership.
member_added = Signal()
# member: the Membership of a user who joined by an invitation.
member_joined = Signal()
# member, by: the deleted Membership. `by` is the same user if they left by themselves.
member_removed = Signal()
# member, by, was: the Membership with its new role; the former role.
role_changed = Signal()
# project, by: the Project that was archived, or unarchived (then `archived_at` is None).
project_archived = Signal()
# invitation, by: the new Invitation.
invitation_created = Signal()
