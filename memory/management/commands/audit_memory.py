"""Report, for each layer, the share of the particulars of the sources that the entries contain.

Particulars are names, dates, identifiers and numbers. The sources of an entry are its messages or
its children. Summaries of files are left out.
"""

import json
from argparse import ArgumentParser

from django.core.management.base import BaseCommand

from memory.layers.statistics import ALL, GROUPS, particulars_by_layer
from projects.command_arguments import find_project
from projects.models import Project

COLUMNS = (*GROUPS, ALL)


class Command(BaseCommand):
    help = (
        "For each layer, compare the entries with their messages or children, and report the share "
        "of the names, dates, identifiers and numbers that the entries still contain."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", metavar="SLUG", help="only this project")
        parser.add_argument("--json", action="store_true", help="print JSON, shares from 0 to 1")

    def handle(self, *args, **options) -> None:
        slug = options["project"]
        projects = [find_project(slug)] if slug else Project.objects.order_by("slug")
        layers_by_project = {project.slug: particulars_by_layer(project) for project in projects}
        if options["json"]:
            report = {
                slug: {
                    layer: {"digests": counts.entries}
                    | {column: counts.share(column) for column in COLUMNS}
                    for layer, counts in layers.items()
                }
                for slug, layers in layers_by_project.items()
            }
            self.stdout.write(json.dumps(report))
            return
        for slug, layers in layers_by_project.items():
            self.stdout.write(f"{slug}\n{_line('layer', 'digests', COLUMNS)}")
            for layer, counts in layers.items():
                shares = map(counts.share, COLUMNS)
                percentages = ["–" if share is None else f"{share:.0%}" for share in shares]
                self.stdout.write(_line(layer, counts.entries, percentages))


def _line(first: object, second: object, others) -> str:
    return f"  {first:<12} {second:>8}" + "".join(f" {other:>12}" for other in others)
