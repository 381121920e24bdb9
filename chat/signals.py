"""What chat tells whoever listens. Sent inside the writing transaction unless said otherwise.

A receiver that starts work elsewhere waits for `transaction.on_commit`.
"""

from django.dispatch import Signal

# session, messages: the Messages just written to it, in order, in whatever status they begin.
message_added = Signal()
# message: the Message whose text, status or deletion changed.
message_changed = Signal()
# message: the assistant's Message that reached its final status. Sent after the commit.
turn_finished = Signal()
# session: the Session that was closed.
session_closed = Signal()
# session: the Session about to be deleted.
session_deleted = Signal()
