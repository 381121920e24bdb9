"""What projects tells whoever listens, inside the writing transaction.

`by` is the user who did it, None for Strata itself, such as a command of whoever runs the server.
"""

from django.dispatch import Signal

# member, by: the Membership that somebody was given.
member_added = Signal()
# member: the Membership of a user who came in by an invitation.
member_joined = Signal()
# member, by: the Membership that was just taken away; `by` is its user where they left themselves.
member_removed = Signal()
# member, by, was: the Membership in its new role, and the role before.
role_changed = Signal()
# invitation, by: the Invitation that was just made.
invited = Signal()
