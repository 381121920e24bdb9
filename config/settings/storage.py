"""Storage of files in an S3 bucket instead of the data folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def in_bucket(bucket: str, endpoint: str, region: str) -> dict[str, Any]:
    """Return the entry of Django's STORAGES setting.

    boto3 finds the keys: in AWS_ACCESS_KEY_ID and related variables, a file, or the machine's role.
    """
    # Imported only if it is used: it takes a third of a second.
    from botocore.config import Config

    client = Config(
        signature_version="s3v4",
        s3={"addressing_style": "path" if endpoint else "auto"},
        connect_timeout=5,
        read_timeout=60,
        retries={"max_attempts": 3},
        # Few other S3 servers support the newer checksums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    options = {
        "bucket_name": bucket,
        "endpoint_url": endpoint or None,
        "region_name": region or None,
        "client_config": client,
        # Private: a view checks access and serves the file.
        "default_acl": None,
        # Larger files are buffered on disk while they are read.
        "max_memory_size": 2**20,
        # File names are unique, so no request has to check for an existing file.
        "file_overwrite": True,
    }
    return {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}


@contextmanager
def failing_as_oserror() -> Iterator[None]:
    """Raise errors of the bucket as `OSError`, like those of a folder."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (Boto3Error, BotoCoreError, ClientError) as error:
        raise OSError(f"The bucket: {error}") from error
