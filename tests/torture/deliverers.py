"""Delivering in processes of its own, which may be killed at any instant."""

import os
from ipaddress import ip_network
from multiprocessing.synchronize import Event

from tests.torture import django_setup  # noqa: F401

# isort: split
from django.conf import settings
from django.db import connection

from memory import webhooks


def deliver(name: str, begun: Event) -> None:
    """Delivers all that is due."""
    os.environ["PGAPPNAME"] = name
    settings.OUTBOUND_ALLOW = [ip_network("127.0.0.1")]
    connection.ensure_connection()
    begun.set()
    for webhook_id in webhooks.due():
        webhooks.deliver(webhook_id)
