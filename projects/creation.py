"""How a project comes to be and who belongs to it: the one path behind page, API and command."""

from django.db import transaction
from django.utils.text import slugify

from projects.models import Membership, Project, Role


def free_slug(name: str) -> str:
    """A slug made of `name` that no project has yet."""
    stem = slugify(name)[:50] or "project"
    taken = set(Project.objects.filter(slug__startswith=stem).values_list("slug", flat=True))
    number, slug = 1, stem
    while slug in taken:
        number += 1
        slug = f"{stem}-{number}"
    return slug


@transaction.atomic
def create_project(owner, **fields) -> Project:
    """A new project with `owner` as its owner; `fields` are the model's, slug optional."""
    fields["slug"] = fields.get("slug") or free_slug(fields["name"])
    project = Project.objects.create(**fields)
    Membership.objects.create(project=project, user=owner, role=Role.OWNER)
    return project
