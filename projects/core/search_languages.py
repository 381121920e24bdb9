"""The languages of recall: PostgreSQL's text search configurations."""

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from projects.core.database import fetch

# Only names that need no quotation marks in SQL.
_QUERY = """
    SELECT cfgname FROM pg_ts_config
    WHERE pg_ts_config_is_visible(oid) AND cfgname ~ '^[a-z_][a-z0-9_]*$' ORDER BY cfgname
"""


def search_languages() -> list[str]:
    """Return the languages of this database: english, german, …, and simple for all others."""
    return [name for (name,) in fetch(_QUERY)]


def validate_search_language(name: str) -> None:
    known = search_languages()
    if name not in known:
        raise ValidationError(
            _("“%(name)s” is not a supported language. Choose one of %(known)s.")
            % {"name": name, "known": ", ".join(known)}
        )
