"""What chat tells whoever listens. Sent inside the writing transaction unless said otherwise.

A receiver that starts work elsewhere waits for `transaction.on_commit`.
"""

from django.dispatch import Signal

# session, messages: the Messages just written to it, in order, in whatever status they begin.
message_added = Signal()
# session, messages: the Messages of it whose text, status, deletion or place on the path changed.
message_changed = Signal()
# message: the assistant's Message that reached its final status. Sent after the commit.
turn_finished = Signal()
# session: the Session that was closed.
session_closed = Signal()
# session: the Session that was shared with the project and is now its creator's alone.
session_made_private = Signal()
# session: the Session about to be deleted.
session_deleted = Signal()
# session, messages, source: the Messages just written to a session of its own, which say what
# another program remembered, from the format `source`; to be proposed.
memories_imported = Signal()
