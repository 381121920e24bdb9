"""Admin pages of the app `projects`, and the base classes of all admin pages."""

from collections.abc import Mapping
from typing import Any, ClassVar

from allauth.account.admin import EmailAddressAdmin
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.usersessions.internal.flows.sessions import end_sessions
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin
from django.db import transaction
from django.db.models import ForeignKey, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from projects import invitations
from projects.accounts.forms import AccountForm
from projects.forms import language_select
from projects.models import (
    Bucket,
    IdempotencyKey,
    Invitation,
    Membership,
    Project,
    ServerModels,
    SpendingLimit,
    SpentInvitation,
    Token,
)
from projects.models.limits import AMOUNTS
from projects.services import delete_project
from projects.signals import member_added, member_removed, project_archived, role_changed

# Replaced by AccountAdmin and AddressAdmin below.
admin.site.unregister([get_user_model(), EmailAddress])
admin.site.site_header = admin.site.site_title = "Strata"


class BaseAdmin(admin.ModelAdmin):
    """Base of all admin pages. Query strings can only filter by keys and by the page's own filters.

    Django permits lookups of all columns, which could be used to guess values that no page shows.
    """

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        if lookup.removesuffix("__exact") in self.key_lookups():
            return True
        names = [self.date_hierarchy, *map(filter_name, self.get_list_filter(request))]
        of_filter = any(name and f"{lookup}__".startswith(f"{name}__") for name in names)
        return of_filter and super().lookup_allowed(lookup, value, request)

    def key_lookups(self) -> set[str]:
        """Return the lookups of the primary key and of the ids of foreign keys."""
        keys = {"pk", self.opts.pk.name}
        for field in self.opts.concrete_fields:
            if isinstance(field, ForeignKey):
                target = field.target_field.name
                keys |= {field.name, field.attname, f"{field.name}__{target}", f"{field.name}__pk"}
        return keys

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        # One by one: in one transaction, rows of different users would be locked in no order.
        for row in queryset:
            self.delete_model(request, row)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if (row := kwargs.get("obj")) is not None:
            context |= self.row_context(request, row)
        return super().render_change_form(request, context, *args, **kwargs)

    def row_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return what the page of `row` needs in addition. It is called when the page is opened."""
        return {}


def filter_name(item: Any) -> str:
    """Return the lookup path, or the parameter, of an item of `list_filter`."""
    if isinstance(item, type) and issubclass(item, admin.SimpleListFilter):
        return str(item.parameter_name)
    return str(item[0] if isinstance(item, list | tuple) else item)


class ReadOnlyMixin:
    """Base of read-only admin pages and inlines, because only the app changes the rows."""

    def has_add_permission(self, request: HttpRequest, obj=None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj=None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj=None) -> bool:
        return False


class ReadOnlyAdmin(ReadOnlyMixin, BaseAdmin):
    ordering: ClassVar[Any] = ("-pk",)
    show_full_result_count = False


def send_member_signals(member: Membership, previous: Mapping[str, Any], by: Any) -> None:
    """Send the signals for the saved `member`. `previous` has its former user and role, if any."""
    if previous and previous["user"] == member.user_id:
        if previous["role"] != member.role:
            role_changed.send(sender=Membership, member=member, by=by, was=previous["role"])
        return
    if previous:
        user_id, role = previous["user"], previous["role"]
        removed = Membership(project=member.project, user_id=user_id, role=role)
        member_removed.send(sender=Membership, member=removed, by=by)
    member_added.send(sender=Membership, member=member, by=by)


class MembershipInline(admin.TabularInline):
    model = Membership
    extra = 0
    autocomplete_fields = ("user",)
    readonly_fields = ("created_at",)


@admin.register(Project)
class ProjectAdmin(BaseAdmin):
    list_display = (
        "name",
        "slug",
        "model_in_use",
        "memory_enabled",
        "bank_max_tokens",
        "created_at",
        "archived_at",
    )
    list_filter = ("memory_enabled", "review_memories", ("archived_at", admin.EmptyFieldListFilter))
    date_hierarchy = "created_at"
    search_fields = ("name", "slug")
    prepopulated_fields = {"slug": ("name",)}
    readonly_fields = ("created_at",)
    # Columns that are only read by processes of an earlier version.
    exclude = ("roll_percent", "day_after_days", "week_after_days", "month_after_days")
    inlines = (MembershipInline,)

    def save_model(self, request: HttpRequest, obj: Project, form: Any, change: bool) -> None:
        # Only the changed fields: members may have changed others since the page was opened.
        obj.save(update_fields=form.changed_data if change else None)
        if change and "archived_at" in form.changed_data:
            project_archived.send(sender=Project, project=obj, by=request.user)

    def delete_model(self, request: HttpRequest, obj: Project) -> None:
        delete_project(obj)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        super().save_formset(request, form, formset, change)
        if formset.model is Membership:
            previous = {form.instance.pk: form.initial for form in formset.initial_forms}
            changed = [member for member, _fields in formset.changed_objects]
            for member in [*formset.new_objects, *changed]:
                send_member_signals(member, previous.get(member.pk, {}), request.user)
            for member in formset.deleted_objects:
                member_removed.send(sender=Membership, member=member, by=request.user)

    def formfield_for_dbfield(self, db_field, request, **kwargs):
        if db_field.name == "search_language":
            kwargs["widget"] = language_select()
        # With hidden initial values, only fields that this user changed are saved: an outdated page
        # does not undo other changes.
        return super().formfield_for_dbfield(db_field, request, show_hidden_initial=True, **kwargs)

    def get_deleted_objects(self, objs, request):
        # List only the projects: their contents would be too many rows to show.
        return [str(project) for project in objs], {"projects": len(objs)}, set(), []

    @admin.display(description=_("chat model"), ordering="chat_model")
    def model_in_use(self, project: Project) -> str:
        return project.chat_model_name


@admin.register(Membership)
class MembershipAdmin(BaseAdmin):
    list_display = ("user", "project", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("user", "project")
    date_hierarchy = "created_at"
    search_fields = ("user__username", "user__email", "project__name", "project__slug")
    autocomplete_fields = ("user", "project")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # On this page, the user and the project of a membership cannot be changed later.
        return ("user", "project", "created_at") if obj else ("created_at",)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        previous = {"user": obj.user_id, "role": form.initial["role"]} if change else {}
        send_member_signals(obj, previous, request.user)

    @transaction.atomic
    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        super().delete_model(request, obj)
        member_removed.send(sender=Membership, member=obj, by=request.user)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        super().delete_queryset(request, queryset)


def replace_primary_address(user: Any, previous: str) -> None:
    """Delete the address `previous` of `user`, and make `user.email` the primary address.

    Otherwise, mail for a new password would still go to the previous address.
    """
    addresses = EmailAddress.objects.filter(user=user)
    addresses.filter(email=previous.lower()).delete()
    addresses.update(primary=False)
    if user.email:
        address, is_primary = user.email.lower(), {"primary": True}
        EmailAddress.objects.update_or_create(user=user, email=address, defaults=is_primary)


@admin.register(get_user_model())
class AccountAdmin(BaseAdmin, UserAdmin):
    """User accounts. Deleting one also deletes the user's imports, tokens and similar rows."""

    form = AccountForm

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and "email" in form.changed_data:
            replace_primary_address(obj, form.initial["email"])

    def get_deleted_objects(self, objs, request):
        # Many dependent rows are read-only in the admin, which would otherwise prevent deletion.
        return [str(user) for user in objs], {"users": len(objs)}, set(), []


@admin.register(EmailAddress)
class AddressAdmin(BaseAdmin, EmailAddressAdmin):
    """Email addresses. Deleting one also removes it from its user."""

    def delete_model(self, request: HttpRequest, obj: EmailAddress) -> None:
        obj.remove()


@admin.register(Token)
class TokenAdmin(BaseAdmin):
    """Change and revoke tokens. Users create them on the page of API tokens."""

    list_display = ("__str__", "user", "project", "scopes", "created", "expiry", "last_used_at")
    list_filter = (("expiry", admin.EmptyFieldListFilter), "created", "last_used_at")
    list_select_related = ("user", "project")
    date_hierarchy = "created"
    search_fields = ("name", "user__username", "project__slug")
    fields = ("name", "user", "project", "scopes", "created", "expiry", "last_used_at")
    readonly_fields = ("user", "project", "created", "last_used_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    """View and revoke invitations. They are created in the settings of a project."""

    list_display = (
        "project",
        "username",
        "role",
        "status",
        "uses",
        "max_uses",
        "expires_at",
        "created_by",
        "created_at",
    )
    list_filter = ("role", ("revoked_at", admin.EmptyFieldListFilter), "expires_at")
    list_select_related = ("project", "created_by")
    date_hierarchy = "created_at"
    search_fields = ("project__name", "project__slug", "username", "created_by__username")
    fields = (*list_display, "revoked_at")
    actions = ("take_back",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Invitation]:
        return Invitation.objects.with_creator_state()

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def take_back(self, request: HttpRequest, queryset: QuerySet[Invitation]) -> None:
        for invitation in queryset:
            invitations.revoke(invitation)

    @admin.display(description=_("state"))
    def status(self, invitation: Invitation) -> str:
        return str(invitation.state.label)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("projects.change_invitation")


@admin.register(SpentInvitation)
class SpentInvitationAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "invitation", "user", "project")
    list_select_related = ("invitation__project", "user", "project")
    date_hierarchy = "created_at"
    search_fields = ("project__slug", "user__username")
    fields = list_display


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "user", "project", "status", "made")
    list_filter = ("status",)
    list_select_related = ("user", "project")
    date_hierarchy = "created_at"
    search_fields = ("user__username", "project__slug")
    fields = ("created_at", "user", "project", "status", "made")


@admin.register(SpendingLimit)
class SpendingLimitAdmin(BaseAdmin):
    """Limits of what projects, users, tokens and members of groups may use in a day or month."""

    list_display = ("__str__", *AMOUNTS)
    list_select_related = ("project", "user", "token__user", "group")
    autocomplete_fields = ("project", "user", "token", "group")
    search_fields = ("project__slug", "user__username", "group__name")


@admin.register(Bucket)
class BucketAdmin(ReadOnlyAdmin):
    list_display = ("subject", "free_at")
    ordering = ("subject",)
    date_hierarchy = "free_at"
    search_fields = ("subject",)


# Sign-in providers are configured only in the server's settings, and their tokens are not stored.
admin.site.unregister([SocialApp, SocialToken, Authenticator, UserSession])


@admin.register(Authenticator)
class AuthenticatorAdmin(BaseAdmin):
    """View second factors and passkeys, and remove lost ones."""

    list_display = ("user", "type", "created_at", "last_used_at")
    list_filter = ("type",)
    list_select_related = ("user",)
    date_hierarchy = "created_at"
    search_fields = ("user__username", "user__email")
    fields = list_display

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj=None) -> bool:
        return False


@admin.register(UserSession)
class UserSessionAdmin(BaseAdmin):
    """View the browsers of users. Deleting one signs it out."""

    list_display = ("user", "ip", "user_agent", "created_at", "last_seen_at")
    list_select_related = ("user",)
    date_hierarchy = "last_seen_at"
    search_fields = ("user__username", "ip")
    fields = list_display

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj=None) -> bool:
        return False

    def delete_model(self, request: HttpRequest, obj: UserSession) -> None:
        end_sessions(request, [obj])


@admin.register(ServerModels)
class ServerModelsAdmin(ReadOnlyAdmin):
    """View the server's models. They are changed on the Models page."""

    list_display = ("chat_model", "system_model", "changed_at")
    search_fields = ("chat_model", "system_model")
