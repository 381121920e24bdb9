"""How a project goes, with all that it holds: the one path behind page and API."""

from django.db import transaction

from projects.models import Project


@transaction.atomic
def delete_project(project: Project) -> None:
    """Deletes `project` and everything in it, for good.

    Locked as by importers, the project first in a way that lets its writers finish, then its
    sessions: nobody waits for the other in a circle, nothing is added, and no row is left over.
    """
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    list(project.sessions.select_for_update().order_by("pk").values_list("pk"))
    Project.objects.select_for_update().get(pk=project.pk).delete()
