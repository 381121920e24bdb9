"""Signals of chat. They are sent inside the writing transaction unless stated otherwise.

A receiver that enqueues a task does so in `transaction.on_commit`.
"""

from django.dispatch import Signal

# session, messages: the new Messages in their order, in the status in which they begin.
message_added = Signal()
# session, messages: the finished Messages whose text, deletion or place on the path changed.
message_changed = Signal()
# session, message: the message whose text was replaced, or that was hidden and is shown again.
message_edited = Signal()
# session, messages: the messages that were deleted or hidden.
messages_deleted = Signal()
# session, message: the reply that reached its final status. Nothing is derived from it before.
reply_stored = Signal()
# message: the reply that reached its final status. Sent after the commit.
turn_finished = Signal()
# session, expired: the Session that was closed, and whether that was for lack of activity.
session_closed = Signal()
# session, by: the Session that was archived, or unarchived if `archived_at` is None.
session_archived = Signal()
# session: the Session that was shared with the project and is now private.
session_made_private = Signal()
# session: the Session that is being deleted.
session_deleted = Signal()
# session: the Session that was restored.
session_restored = Signal()
# session: the deleted Session whose undo window is over. Receivers delete the data that they
# derived from the session; its row is deleted afterwards.
session_expired = Signal()
# session, by: a private Session whose text a member of staff saw in the admin. Sent outside of any
# transaction.
private_text_opened = Signal()
# project, subjects: ids and source digests (chat.importers.base) of objects to import. Each
# receiver returns the set of subjects that must not be imported.
import_planned = Signal()
# session, messages, source: new Messages with memories of another program, in the format `source`.
# Memory proposes them as entries.
memories_imported = Signal()
# upload: the Import that ended, successfully or not.
import_finished = Signal()
