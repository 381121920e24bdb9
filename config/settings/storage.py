"""Files in a bucket that speaks S3, in place of the data folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def in_bucket(bucket: str, endpoint: str, region: str) -> dict[str, Any]:
    """Django's settings for it. Keys come as boto3 finds them: AWS_ACCESS_KEY_ID and its like, a
    file, or the machine's own role.
    """
    # Loaded by those who use it alone: it takes a third of a second.
    from botocore.config import Config

    client = Config(
        signature_version="s3v4",
        s3={"addressing_style": "path" if endpoint else "auto"},
        connect_timeout=5,
        read_timeout=60,
        retries={"max_attempts": 3},
        # Servers that speak S3 and are not Amazon's know the newer checksums seldom.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    options = {
        "bucket_name": bucket,
        "endpoint_url": endpoint or None,
        "region_name": region or None,
        "client_config": client,
        # Whoever may is served by a view; nobody is given an address.
        "default_acl": None,
        # Bytes of a file that is read; what is larger lies on the disk meanwhile.
        "max_memory_size": 2**20,
        # Each file has a name of its own, so that none needs to be looked for first.
        "file_overwrite": True,
    }
    return {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}


@contextmanager
def failing_as_oserror() -> Iterator[None]:
    """What a bucket refuses, or a connection to it, is an OSError as it is of a folder."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (Boto3Error, BotoCoreError, ClientError) as error:
        raise OSError(f"The bucket: {error}") from error
