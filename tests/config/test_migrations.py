"""A database of a released version is brought up to date by what comes after, never by changes to
what it has already applied.
"""

import hashlib
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

# The migrations of releases: the SHA-256 of each file. A change of the data is a new migration.
RELEASED = {
    "chat/migrations/0001_initial.py": (
        "98184244117d6015ff71e7428c474183351a331b956ebe88bd141ae674a759eb"
    ),
    "chat/migrations/0002_no_samples.py": (
        "d9188e657440bd6cb7402891952a93de114752c62e222581483dedeabf0e5d3a"
    ),
    "config/migrations/0001_initial.py": (
        "3a4a6ef7b1936d6e4641b81d813120d8d8ae2e93d56e0996c89500009d84160f"
    ),
    "config/migrations/0002_schedule.py": (
        "a0434f7898bb40002c7a395e37950aba4d675a432f9bb351b692174feec338b8"
    ),
    "memory/migrations/0001_initial.py": (
        "bad0fb88f070b240cb6f1301974969ee61c863ef6cf3375bc5d318203444c9b2"
    ),
    "memory/migrations/0002_history.py": (
        "3a2e4255083241124e648990857fd70bdf44711a3e4a7a0f06cdf067e3dcbf44"
    ),
    "memory/migrations/0003_recall.py": (
        "ca7e97a3305fa26ca59565c16a818e51f84ec8053d5f585d1db25d6ec89b1b2e"
    ),
    "projects/migrations/0001_initial.py": (
        "1acf8e957f33ce2eb77f3a4802cc3c48a606874650f0db6a3f34d2170d6425d5"
    ),
    "projects/migrations/0002_unlogged.py": (
        "25a54c22b5ade64d21e2c9f8d94f80580d449a82535c5f3ee34882b7dbc9d24e"
    ),
}


@pytest.mark.parametrize("path", RELEASED)
def test_a_released_migration_stays_what_it_was(path):
    content = (Path(settings.BASE_DIR) / path).read_bytes()
    assert hashlib.sha256(content).hexdigest() == RELEASED[path]


@pytest.mark.django_db
def test_the_models_need_no_further_migration():
    out = StringIO()
    call_command("makemigrations", check_changes=True, dry_run=True, stdout=out)
    assert "No changes" in out.getvalue()
