"""Signals of chat. Unless stated otherwise, they are sent inside the transaction of the change.

A receiver that enqueues a task must do so in `transaction.on_commit`. The comments name the
arguments of each signal.
"""

from django.dispatch import Signal

# session, messages: the new Messages in order. A reply has its initial status.
message_added = Signal()
# session, messages: the finished Messages whose text, deletion or place on the active path changed.
message_changed = Signal()
# session, message: the message whose text was replaced, or that is shown again after being hidden.
message_edited = Signal()
# session, messages: the messages that were deleted or hidden.
messages_deleted = Signal()
# session, message: the reply that is now final. Before this, nothing is derived from it. It is sent
# again, followed by `message_changed`, if an interrupted reply is stored completely after all.
reply_stored = Signal()
# message: the reply that is now final. Sent after the commit.
turn_finished = Signal()
# session, expired: the Session that was closed; whether it was closed for lack of activity.
session_closed = Signal()
# session, by: the Session that was archived, or unarchived (then `archived_at` is None).
session_archived = Signal()
# session: the Session that was shared with the project and has been made private.
session_made_private = Signal()
# session: the Session that is being deleted.
session_deleted = Signal()
# session: the Session that was restored.
session_restored = Signal()
# session: the deleted Session whose undo window is over. Receivers must delete the data that they
# derived from it. Its row is deleted afterwards.
session_expired = Signal()
# session, by: staff opened a text of a private Session in the admin. Sent outside transactions.
private_text_opened = Signal()
# project, subjects: the ids and source digests (chat.importers.base) of objects that an import
# would add. Each receiver returns the set of subjects that must not be imported.
import_planned = Signal()
# session, messages, source: new Messages with memories from another program in the format `source`.
# Memory proposes entries from them.
memories_imported = Signal()
# upload: the Import that has ended, successfully or not.
import_finished = Signal()
