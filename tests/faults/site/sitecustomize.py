"""Python imports this module as it starts, wherever this folder is on its path: every process that
sets Django up then has the fault that STRATA_FAULT names.
"""

import os

import django

NAME = os.environ.get("STRATA_FAULT")


def _planting(set_up):
    def setup(*arguments, **options) -> None:
        set_up(*arguments, **options)
        from tests.faults.planted import FAULTS

        django.setup = set_up
        FAULTS[NAME].plant()

    return setup


if NAME:
    django.setup = _planting(django.setup)
