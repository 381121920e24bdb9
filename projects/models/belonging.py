"""What the rows of one project have in common."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models.fields.reverse_related import ForeignObjectRel


class OfProject(models.Model):
    """A row of one project. `save` names that too, so that one shard has to write."""

    project_id: UUID

    class Meta:
        abstract = True

    def _do_update(self, base_qs: models.QuerySet, *args: Any, **kwargs: Any) -> Any:
        # What django-multitenant narrows, too: https://github.com/citusdata/django-multitenant
        return super()._do_update(base_qs.filter(project=self.project_id), *args, **kwargs)


def remove(rows: models.QuerySet) -> int:
    """Deletes `rows`, which name their projects, and what hangs on them; how many they were.

    As Django does, but by the projects everywhere; and no signals are sent.
    """
    keys = _keys_to(rows.model)
    if not keys:
        return rows._raw_delete(rows.db)
    found = list(rows.values_list("project", "pk"))
    projects, ids = {project for project, _ in found}, [pk for _, pk in found]
    for key in keys if ids else ():
        hanging = _within(key.related_model, projects, f"{key.field.name}__in", ids)
        if key.on_delete is models.CASCADE:
            remove(hanging)
        else:
            hanging.update(**{key.field.name: None})
    _within(rows.model, projects, "pk__in", ids)._raw_delete(rows.db)
    return len(ids)


def _keys_to(model: type[models.Model]) -> list[Any]:
    """The keys by which other rows go, or lose what they point at, with one of this model."""
    relations = model._meta.get_fields(include_hidden=True)
    keys = (one for one in relations if isinstance(one, ForeignObjectRel))
    return [key for key in keys if key.on_delete in (models.CASCADE, models.SET_NULL)]


def _within(
    model: type[models.Model], projects: Collection[UUID], among: str, ids: Collection[Any]
) -> models.QuerySet:
    return model._base_manager.filter(**{among: ids}, project__in=projects)
