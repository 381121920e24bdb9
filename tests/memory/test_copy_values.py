"""Columns on their way to PostgreSQL: what is put into words by hand reads as it was."""

from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pytest
from django.db import connection

from memory.recall import chunk_writer

TEXTS = [
    'a "quoted" word',
    "back\\slash\\",
    "{a,b}",
    "NULL",
    "",
    " ",
    "two\nlines",
    "“ü” 😀, it's 5%",
]
COLUMNS = {
    "text": TEXTS,
    "uuid": [UUID(int=7), None],
    "int": [0, -1, None],
    "bytea": [b"", b"\\x00", bytes(range(256))],
    "timestamptz": [datetime(2026, 3, 2, 9, 30, 0, 123456, UTC), None],
}


@pytest.mark.django_db
@pytest.mark.parametrize(("kind", "values"), COLUMNS.items())
def test_an_array_reads_as_it_was(kind, values):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM unnest(%s::{kind}[])", [chunk_writer.array_literal(values)])
        read = [bytes(item) if kind == "bytea" else item for (item,) in cursor.fetchall()]
    assert read == values


@pytest.mark.django_db
def test_a_vector_is_kept_as_the_nearest_halves():
    rows = np.random.default_rng(0).normal(size=(20, 256)).astype(np.float32)
    rows[0, :4] = 0, -1, 6e-8, 1e-12
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT one::halfvec::text FROM unnest(%s::text[]) one",
            [chunk_writer.array_literal(chunk_writer.vector_literals(rows))],
        )
        read = [item.strip("[]").split(",") for (item,) in cursor.fetchall()]
    assert (np.array(read, np.float32).astype(np.float16) == rows.astype(np.float16)).all()
