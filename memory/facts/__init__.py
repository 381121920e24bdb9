"""Facts: entered by hand or extracted together with summaries, then changed and reviewed.

A topic is a subject with a predicate. A fact ends when the next fact of its topic begins (see
memory.models.facts), so creating a fact changes no other row.
"""

from memory.facts.create import Statement, create_fact
from memory.facts.permissions import contradictions, facts_for, may_decide, topic_history
from memory.facts.update import approve, close, edit, edit_fields, hide, lock_version, unhide
