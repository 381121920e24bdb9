"""How a project goes, with all that it holds: the one path behind page and API."""

from django.db import transaction

from projects.models import Project


@transaction.atomic
def delete_project(project: Project) -> None:
    """Deletes `project` and everything in it, for good.

    Its sessions are locked before it is, as by whoever writes into one, and nothing is added to it
    meanwhile: nobody waits for the other in a circle, and no row is left over.
    """
    list(project.sessions.select_for_update().order_by("pk").values_list("pk"))
    Project.objects.select_for_update().get(pk=project.pk).delete()
