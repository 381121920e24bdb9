"""`{% told receipt membership as parts %}`: the things that a prompt would tell."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import template

from memory import told as telling
from projects.models import Membership

register = template.Library()


@register.simple_tag
def told(receipt: Mapping[str, Any], membership: Membership) -> Sequence[telling.Part]:
    return telling.parts(receipt, membership)
