"""The ASGI entry point."""

import os

from django.core.asgi import get_asgi_application

from config.bodies import BoundedBodies

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = BoundedBodies(get_asgi_application())
