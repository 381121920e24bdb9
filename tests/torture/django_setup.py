"""Django set up for work on the database that the environment names. Imported before all else."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

# What the work takes, imported once for all processes that are forked from this one.
import pydantic_ai.models.openai  # noqa: E402, F401
import pytest  # noqa: E402, F401

import chat.prompt.builder  # noqa: E402, F401
import chat.prompt.sections  # noqa: E402, F401
import memory.layers.cycle  # noqa: E402, F401
import memory.layers.summarising.llm  # noqa: E402, F401
import memory.prompt.sections  # noqa: E402, F401
