"""Uploaded and static files."""

import hashlib
from importlib.metadata import version
from typing import Annotated, Any

import django
from pydantic import Field

from config.settings.env import (
    BASE_DIR,
    Http,
    Variables,
    load,
    number,
    read_secret,
    require_packages,
    var,
)
from config.settings.security import DATA_DIR, DEBUG


class FileVariables(Variables):
    title = "Files"

    # The characters that boto3 accepts in a name, and the address of an access point.
    s3_bucket: Annotated[str, Field(pattern=r"^([A-Za-z0-9._-]{1,255}|arn:[^\s]+)$")] = var(
        "STRATA_S3_BUCKET",
        "",
        "the name of a bucket, without s3:// and folders",
        "An S3 bucket for files, images and imports. Its credentials are "
        "`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`. Requires the extra `s3`.",
        example="strata",
        shown_default="the data folder",
    )
    s3_region: str = var(
        "STRATA_S3_REGION",
        "",
        "the name of a region such as eu-central-1",
        "The bucket's region.",
        example="eu-central-1",
    )
    s3_endpoint: Http = var(
        "STRATA_S3_ENDPOINT",
        "",
        "an http:// or https:// address",
        "The address of an S3-compatible server.",
        example="https://s3.example.org",
        shown_default="Amazon's",
    )
    max_upload_mb: int = number(
        "STRATA_MAX_UPLOAD_MB", 512, (1, 100_000), "The largest file to import.", "megabytes"
    )
    max_file_mb: int = number(
        "STRATA_MAX_FILE_MB", 50, (1, 1_000), "The largest file of a project.", "megabytes"
    )
    max_file_pages: int = number(
        "STRATA_MAX_FILE_PAGES",
        2_000,
        (1, 20_000),
        "The maximum number of pages in a file of a project.",
        "pages",
    )
    project_files_mb: int = number(
        "STRATA_PROJECT_FILES_MB",
        2_000,
        (1, 10_000_000),
        "The size of all files of a project, in all their versions. Each copy counts.",
        "megabytes",
    )


def in_bucket(bucket: str, endpoint: str, region: str) -> dict[str, Any]:
    """Return the entry of Django's STORAGES setting for a bucket.

    boto3 finds the keys: in AWS_ACCESS_KEY_ID and related variables, a file, or the machine's role.
    """
    require_packages("boto3", "s3", "STRATA_S3_BUCKET")
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


_env = load(FileVariables)
if _env.s3_endpoint and not _env.s3_bucket:
    raise SystemExit(
        "strata: STRATA_S3_ENDPOINT is set, but STRATA_S3_BUCKET is not. "
        "Set it to the name of a bucket on that server."
    )
# boto3 reads the keys itself.
for _name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
    read_secret(_name)
MAX_UPLOAD_MB = _env.max_upload_mb
MAX_FILE_MB = _env.max_file_mb
MAX_FILE_PAGES = _env.max_file_pages
PROJECT_FILES_MB = _env.project_files_mb
# Attachments, files of projects, and files to import. They have no public URL: views check access
# and serve them.
MEDIA_ROOT = DATA_DIR / "files"
S3_BUCKET = _env.s3_bucket
STORAGES: dict[str, dict[str, object]] = {
    "default": in_bucket(S3_BUCKET, _env.s3_endpoint, _env.s3_region)
    if S3_BUCKET
    else {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# The log of forget requests. `restore` applies it to the restored data.
TOMBSTONES = DATA_DIR / "tombstones.jsonl"
# Bytes. A program may send an image of 20 MB inside its JSON, in base64.
DATA_UPLOAD_MAX_MEMORY_SIZE = 30_000_000
# The bytes of a form with its files: one file to import, one file of a project, or ten images.
MAX_FORM_BYTES = max(MAX_UPLOAD_MB * 2**20, MAX_FILE_MB * 2**20, 200_000_000) + 2**20
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "config.http.static_files.BundleFinder",
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
]


def static_release() -> str:
    """Return a digest of Strata's static files, and of the versions of the packages that contain
    further static files.
    """
    digest = hashlib.sha256(repr((django.VERSION, version("drf-spectacular-sidecar"))).encode())
    for path in sorted((BASE_DIR / "static").rglob("*.*")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


# Browsers cache static files permanently, because each release has its own URLs.
STATIC_URL = "static/" if DEBUG else f"static/{static_release()}/"
WHITENOISE_IMMUTABLE_FILE_TEST = "^(?!)" if DEBUG else "."
# Serve files from the source folders, so that `collectstatic` is not needed.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
