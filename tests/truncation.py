"""Delete the committed rows of a test after it."""

from django.db import connections
from django.test import TransactionTestCase

# Django's `flush` truncates every table, full or not, and makes permissions and content types
# anew: five to ten times the work. What migrations wrote stays here, so that no test depends on
# whether such a test ran before it. Vectors are truncated, since the dead stay in their graph.
EMPTY = """
DO $$
DECLARE name text;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR name IN
        SELECT quote_ident(tablename) FROM pg_tables
        WHERE schemaname = 'public'
        AND tablename NOT IN ('django_migrations', 'django_content_type', 'auth_permission')
        AND tablename NOT LIKE 'django_celery_beat_%'
        AND tablename <> 'memory_vector'
    LOOP
        EXECUTE 'DELETE FROM ' || name;
    END LOOP;
    IF EXISTS (SELECT FROM memory_vector) THEN
        TRUNCATE memory_vector;
    END IF;
END $$
"""


def _empty(case: TransactionTestCase) -> None:
    for alias in case._databases_names(include_mirrors=False):
        with connections[alias].cursor() as cursor:
            cursor.execute(EMPTY)


def quickly() -> None:
    """From now on."""
    TransactionTestCase._fixture_teardown = _empty
