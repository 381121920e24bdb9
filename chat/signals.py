"""What chat tells whoever listens. Sent inside the writing transaction unless said otherwise.

A receiver that starts work elsewhere waits for `transaction.on_commit`.
"""

from django.dispatch import Signal

# session, messages: the Messages just written to it, in order, in whatever status they begin.
message_added = Signal()
# session, messages: the Messages of it whose text, status, deletion or place on the path changed.
message_changed = Signal()
# session, message: the assistant's Message that reaches its final status.
reply_kept = Signal()
# message: the assistant's Message that reached its final status. Sent after the commit.
turn_finished = Signal()
# session: the Session that was closed.
session_closed = Signal()
# session: the Session that was shared with the project and is now its creator's alone.
session_made_private = Signal()
# session: the Session about to be deleted.
session_deleted = Signal()
# session: the Session whose deletion was taken back in time.
session_restored = Signal()
# session: the deleted Session whose time to be restored is over. Whoever holds something of it lets
# go of it; the row itself may be gone afterwards.
session_expired = Signal()
# session, by: a private Session whose words the user by, a member of staff, was shown in the admin.
# Sent outside of any transaction.
private_text_opened = Signal()
# project, subjects: ids, and marks of sources (chat.importers.sources), of what is about to be
# imported. Each receiver answers with the set of those that must not come back.
import_planned = Signal()
# session, messages, source: the Messages just written to a session of its own, which say what
# another program remembered, from the format `source`; to be proposed.
memories_imported = Signal()
# upload: the Import that has just come to its end, well or not.
import_finished = Signal()
