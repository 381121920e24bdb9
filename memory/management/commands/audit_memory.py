"""How much of what was told memory's digests still carry, layer by layer."""

import json
from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from memory.layers.statistics import ALL, GROUPS, ParticularCounts, particulars_by_layer
from projects.models import Project

COLUMNS = (*GROUPS, ALL)


class Command(BaseCommand):
    help = "Tells which share of names, dates, identifiers and numbers each layer's digests carry."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", metavar="SLUG", help="only this project")
        parser.add_argument("--json", action="store_true", help="as JSON, shares from 0 to 1")

    def handle(self, *args, **options) -> None:
        projects = Project.objects.order_by("slug")
        if options["project"]:
            projects = projects.filter(slug=options["project"])
            if not projects:
                raise CommandError(f"There is no project “{options['project']}”.")
        found = {project.slug: particulars_by_layer(project) for project in projects}
        if options["json"]:
            told = {
                slug: {layer: _as_json(kept) for layer, kept in layers.items()}
                for slug, layers in found.items()
            }
            self.stdout.write(json.dumps(told))
            return
        for slug, layers in found.items():
            self.stdout.write(f"{slug}\n{_line('layer', 'digests', COLUMNS)}")
            for layer, kept in layers.items():
                shares = [_percent(kept.share(column)) for column in COLUMNS]
                self.stdout.write(_line(layer, kept.digests, shares))


def _as_json(kept: ParticularCounts) -> dict[str, float | int | None]:
    return {"digests": kept.digests, **{column: kept.share(column) for column in COLUMNS}}


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def _line(first: object, second: object, others) -> str:
    return f"  {first:<8} {second:>8}" + "".join(f" {other:>12}" for other in others)
