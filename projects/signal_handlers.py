"""Revokes invitations whose creator loses access, or whose invited user joins or is removed."""

from typing import Any

from django.conf import settings
from django.db.models.signals import post_save, pre_delete
from django.dispatch import receiver

from projects import invitations
from projects.models import MemberRole, Membership
from projects.signals import member_added, member_joined, member_removed, role_changed


@receiver([member_added, member_joined])
def close_invitations_of_new_member(member: Membership, **kwargs: object) -> None:
    invitations.revoke_sent_to(member.user, member.project_id)


@receiver(member_removed)
def exclude_removed_member(member: Membership, **kwargs: object) -> None:
    invitations.exclude_user(member.project_id, member.user)


@receiver(role_changed)
def revoke_links_of_former_owner(member: Membership, **kwargs: object) -> None:
    if member.role != MemberRole.OWNER:
        invitations.revoke_created_by(member.user, member.project_id)


@receiver(post_save, sender=settings.AUTH_USER_MODEL)
def revoke_links_of_inactive_user(instance: Any, update_fields: Any, **kwargs: object) -> None:
    # Skip the frequent saves of `last_login` at sign-in.
    if not instance.is_active and (update_fields is None or "is_active" in update_fields):
        invitations.revoke_created_by(instance)


@receiver(pre_delete, sender=settings.AUTH_USER_MODEL)
def revoke_links_of_deleted_user(instance: Any, **kwargs: object) -> None:
    invitations.revoke_created_by(instance)
