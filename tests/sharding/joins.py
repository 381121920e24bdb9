"""Joins along a key from one table of a project to another say that it is the same project.

In one database the keys say so already, and the planner would take the second condition for one
that leaves fewer rows. A sharded one needs it in each join. This is all that a class of foreign
keys would have to do for it.
"""

from django.db.models import ForeignKey
from django.db.models.lookups import Lookup

from tests.sharding.tables import tenants


def begin() -> None:
    ForeignKey.get_extra_restriction = same_project


def same_project(self: ForeignKey, alias: str | None, related_alias: str) -> Lookup | None:
    """`alias` is the table that the key leads to, `related_alias` the one that has it."""
    keys = tenants()
    own_meta, related_meta = self.model._meta, self.related_model._meta
    if alias is None or own_meta.db_table not in keys or related_meta.db_table not in keys:
        return None
    mine, other = own_meta.get_field("project"), related_meta.get_field("project")
    return other.get_lookup("exact")(other.get_col(alias), mine.get_col(related_alias))
