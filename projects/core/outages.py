"""Recognise errors of the database and of the bucket while they are not available, and of a full
disk.

Entry points respond 503 in place of 500: `config.http.error_pages` for pages and REST,
`memory.api.mcp.server` for MCP.
"""

import errno
from typing import ClassVar

import psycopg
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from projects.core.errors import StrOrPromise, UnavailableError

# The packages of the extra `s3` may be missing, so their errors are recognised by their modules.
BUCKET_MODULES = ("boto3.exceptions", "botocore.exceptions")


class DatabaseUnavailableError(UnavailableError):
    """The database refuses connections or has closed one, for example while it restarts."""

    default_message: ClassVar[StrOrPromise] = _(
        "The database is not available right now. Try again in a moment."
    )
    retry_after_s = 5


class BucketUnavailableError(UnavailableError):
    """The bucket does not respond, or refuses a request. The log has its error code."""

    default_message: ClassVar[StrOrPromise] = _(
        "The file storage is not available right now. Try again later."
    )
    retry_after_s = 30


class DiskFullError(UnavailableError):
    """The disk of the database, of the data folder or of /tmp is full."""

    default_message: ClassVar[StrOrPromise] = _(
        "The disk of the server is full. An administrator has to free space."
    )
    retry_after_s = 30


def as_outage(error: BaseException | None) -> UnavailableError | None:
    """Return the error for users if `error` is an outage of a service; None for other errors,
    which are errors of Strata.
    """
    if error is None:
        return None
    if _is_connection_lost(error):
        return DatabaseUnavailableError()
    if isinstance(error.__cause__, psycopg.errors.DiskFull) or (
        isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    ):
        return DiskFullError()
    modules = {kind.__module__ for kind in type(error).__mro__}
    if settings.S3_BUCKET and not modules.isdisjoint(BUCKET_MODULES):
        return BucketUnavailableError()
    return None


def _is_connection_lost(error: BaseException) -> bool:
    """Return whether the database refused or closed the connection."""
    cause = error.__cause__
    if not isinstance(cause, psycopg.OperationalError):
        return False
    # PostgreSQL and PgBouncer close the connection after a fatal error. PgBouncer 1.18 sends only
    # the other field, always in English.
    if cause.sqlstate is not None:
        return (cause.diag.severity_nonlocalized or cause.diag.severity) in ("FATAL", "PANIC")
    # An error of the driver. It cannot send a statement with too many parameters.
    return not str(cause).startswith("sending ")
