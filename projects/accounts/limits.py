"""How often somebody may try, counted where all processes see it: the table behind the cache."""

from django.conf import settings
from django.db import connection


def clear() -> None:
    """Removes what the cache in the database keeps no more. It asks for a table of its own, and
    looks after it only when it is full.
    """
    if settings.CACHE_URL:
        return
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM projects_cache WHERE expires < statement_timestamp()")
