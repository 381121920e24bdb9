"""Primary keys, and the base classes of models.

Saving and deleting filter every statement by project. If a database is sharded by project, each
statement then runs on one shard.
"""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models.fields.reverse_related import ForeignObjectRel
from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """Return a new UUIDv7 (RFC 9562, section 5.7). UUIDv7s sort by creation time."""
    return uuid7()


class IdModel(models.Model):
    """A row whose primary key is a UUIDv7."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)

    class Meta:
        abstract = True


class ProjectScopedModel(models.Model):
    """A row that belongs to one project. `save` also filters by the project."""

    project_id: UUID

    class Meta:
        abstract = True

    def _do_update(self, base_qs: models.QuerySet, *args: Any, **kwargs: Any) -> Any:
        # The same as in django-multitenant: https://github.com/citusdata/django-multitenant
        return super()._do_update(base_qs.filter(project=self.project_id), *args, **kwargs)


def in_project(project: object | None) -> models.Q:
    """Return the condition for the rows of a project, or for all rows if `project` is None."""
    return models.Q() if project is None else models.Q(project=project)


def delete_rows(rows: models.QuerySet) -> int:
    """Delete `rows` with all rows that depend on them. Return the number of `rows`.

    It works like Django's deletion, but every statement filters by project, and no signals are
    sent.
    """
    relations = [
        relation
        for relation in rows.model._meta.get_fields(include_hidden=True)
        if isinstance(relation, ForeignObjectRel)
        and relation.on_delete in (models.CASCADE, models.SET_NULL)
    ]
    if not relations:
        return rows._raw_delete(rows.db)
    keys = list(rows.values_list("project", "pk"))
    projects, ids = {project for project, _ in keys}, [pk for _, pk in keys]
    for relation in relations if ids else ():
        name = relation.field.name
        dependents = _of_projects(relation.related_model, projects, f"{name}__in", ids)
        if relation.on_delete is models.CASCADE:
            delete_rows(dependents)
        else:
            dependents.update(**{name: None})
    _of_projects(rows.model, projects, "pk__in", ids)._raw_delete(rows.db)
    return len(ids)


def _of_projects(
    model: Any, projects: Collection[UUID], lookup: str, ids: Collection[Any]
) -> models.QuerySet:
    return model._base_manager.filter(**{lookup: ids}, project__in=projects)
