"""The tables below Project, each cut into partitions by the hash of its project.

What could not live in shards shows here: a unique constraint that does not begin with the project,
a key of another table that does not tell the project too.
"""

from dataclasses import dataclass

from django.apps import apps
from django.db import connection

PARTITIONS = 3
OURS = ("chat", "memory")
# They belong to the server, and are on every shard.
OF_THE_SERVER = {"chat_modelprovider", "chat_modelprice"}


def tenants() -> dict[str, str]:
    """The tables that belong to projects, with the name of their primary key's column."""
    return {
        model._meta.db_table: model._meta.pk.column
        for app in OURS
        for model in apps.get_app_config(app).get_models()
        if model._meta.db_table not in OF_THE_SERVER
    }


@dataclass(frozen=True)
class TableDescription:
    """What the catalogue says of a table, as statements that say it again."""

    constraints: list[tuple[str, str, str, list[str], str]]
    indexes: list[str]
    index_samples: list[tuple[str, int, int]]
    triggers: list[str]
    sampled: list[tuple[str, int]]


def cut() -> None:
    """Cuts every table of `tenants()`; they have to be empty. Raises AssertionError."""
    keys = tenants()
    descriptions = {table: _describe(table) for table in keys}
    with connection.cursor() as cursor:
        for table in keys:
            cursor.execute(f'ALTER TABLE "{table}" RENAME TO "{table}_whole"')
        for table, pk in keys.items():
            _make(cursor, table, pk)
        for table in keys:
            cursor.execute(f'DROP TABLE "{table}_whole" CASCADE')
        for table, pk in keys.items():
            _key(cursor, table, pk, descriptions[table])
        for table in keys:
            _rest(cursor, table, keys, descriptions[table])


def _describe(table: str) -> TableDescription:
    """`constraints`: name, kind, definition, columns, and the table that a foreign key names.
    `index_samples`, as `sampled` of columns: how many ANALYZE keeps of an index's own.
    """
    with connection.cursor() as cursor:

        def query_rows(question: str) -> list:
            cursor.execute(question, [table])
            return cursor.fetchall()

        return TableDescription(
            constraints=query_rows(
                "SELECT conname, contype, pg_get_constraintdef(oid), ARRAY(SELECT attname::text"
                " FROM unnest(conkey) WITH ORDINALITY AS k(n, place) JOIN pg_attribute"
                " ON attrelid = conrelid AND attnum = n ORDER BY place), confrelid::regclass::text"
                " FROM pg_constraint WHERE conrelid = %s::regclass AND contype IN ('u', 'f')"
            ),
            indexes=[
                item
                for (item,) in query_rows(
                    "SELECT pg_get_indexdef(indexrelid) FROM pg_index"
                    " WHERE indrelid = %s::regclass AND NOT EXISTS"
                    " (SELECT FROM pg_constraint WHERE conindid = indexrelid"
                    " AND contype IN ('p', 'u'))"
                )
            ],
            index_samples=query_rows(
                "SELECT indexrelid::regclass::text, attnum, attstattarget FROM pg_index"
                " JOIN pg_attribute ON attrelid = indexrelid"
                " WHERE indrelid = %s::regclass AND attstattarget >= 0"
            ),
            triggers=[
                item
                for (item,) in query_rows(
                    "SELECT pg_get_triggerdef(oid) FROM pg_trigger"
                    " WHERE tgrelid = %s::regclass AND NOT tgisinternal"
                )
            ],
            sampled=query_rows(
                "SELECT attname, attstattarget FROM pg_attribute WHERE attrelid = %s::regclass"
                " AND attnum > 0 AND attstattarget >= 0"
            ),
        )


def _make(cursor, table: str, pk: str) -> None:
    cursor.execute(
        f'CREATE TABLE "{table}" (LIKE "{table}_whole" INCLUDING DEFAULTS INCLUDING IDENTITY'
        " INCLUDING GENERATED INCLUDING CONSTRAINTS) PARTITION BY HASH (project_id)"
    )
    for number in range(PARTITIONS):
        cursor.execute(
            f'CREATE TABLE "{table}_{number}" PARTITION OF "{table}"'
            f" FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number})"
        )


def _key(cursor, table: str, pk: str, description: TableDescription) -> None:
    columns = ["project_id"] if pk == "project_id" else ["project_id", pk]
    named = ", ".join(f'"{column}"' for column in columns)
    cursor.execute(f'ALTER TABLE "{table}" ADD PRIMARY KEY ({named})')
    for name, kind, definition, unique, _ in description.constraints:
        if kind == "u":
            # The one-to-one with a session is the primary key, too.
            assert "project_id" in unique, f"{table}: {name} does not begin with the project"
            cursor.execute(f'ALTER TABLE "{table}" ADD CONSTRAINT "{name}" {definition}')


def _rest(cursor, table: str, keys: dict[str, str], description: TableDescription) -> None:
    for name, kind, definition, columns, other in description.constraints:
        other = other.removesuffix("_whole")
        if kind != "f":
            continue
        if other in keys:
            [column] = columns
            definition = (
                f'FOREIGN KEY (project_id, "{column}") REFERENCES "{other}"'
                f' (project_id, "{keys[other]}") DEFERRABLE INITIALLY DEFERRED'
            )
        cursor.execute(f'ALTER TABLE "{table}" ADD CONSTRAINT "{name}" {definition}')
    for index in description.indexes:
        if index.startswith("CREATE UNIQUE"):
            assert "(project_id," in index, f"{table}: {index} does not begin with the project"
        cursor.execute(index)
    for index, number, target in description.index_samples:
        cursor.execute("SELECT relid::text FROM pg_partition_tree(%s::regclass)", [index])
        for (item,) in cursor.fetchall():
            cursor.execute(f"ALTER INDEX {item} ALTER COLUMN {number} SET STATISTICS {target}")
    for trigger in description.triggers:
        cursor.execute(trigger)
    for column, target in description.sampled:
        cursor.execute(f'ALTER TABLE "{table}" ALTER COLUMN "{column}" SET STATISTICS {target}')
