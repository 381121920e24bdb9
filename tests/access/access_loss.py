"""The ways in which a member loses access to a project, on the real pages, routes and admin."""

from collections.abc import Callable

from django.test import Client

from projects.models import Membership, Token

PAGE = "/projects/billing/members/"
API = "/api/v1/projects/billing/members/"


class Exits:
    """Edgar, a second owner of Olive's project Billing, loses access in the way of each method."""

    def __init__(self, owner, leaver, admin: Client) -> None:
        self.leaver, self.admin = leaver, admin
        self.membership = Membership.objects.get(user=leaver, project__slug="billing")
        self.page = Client()
        self.page.force_login(owner)
        _token, secret = Token.issue(owner)
        self.bearer = {"Authorization": f"Bearer {secret}"}

    def removed_on_the_page(self) -> None:
        self.page.post(PAGE, {"action": "remove", "username": "edgar"})

    def removed_by_the_api(self) -> None:
        self.page.delete(f"{API}edgar/", headers=self.bearer)

    def left_on_the_page(self) -> None:
        own = Client()
        own.force_login(self.leaver)
        own.post(PAGE, {"action": "remove", "username": "edgar"})

    def removed_in_the_list_of_the_admin(self) -> None:
        selected = {"action": "delete_selected", "_selected_action": [str(self.membership.pk)]}
        self.admin.post("/admin/projects/membership/", selected | {"post": "yes"})

    def removed_inline_in_the_admin(self) -> None:
        url = f"/admin/projects/project/{self.membership.project_id}/change/"
        form = self.admin.get(url).context["adminform"].form
        fields = {name: value for name, value in form.initial.items() if value not in (None, False)}
        rows = list(Membership.objects.filter(project=self.membership.project_id))
        fields |= {"memberships-TOTAL_FORMS": len(rows), "memberships-INITIAL_FORMS": len(rows)}
        for place, row in enumerate(rows):
            prefix = f"memberships-{place}"
            fields |= {f"{prefix}-id": row.pk, f"{prefix}-project": row.project_id}
            fields |= {f"{prefix}-user": row.user_id, f"{prefix}-role": row.role}
            if row.pk == self.membership.pk:
                fields[f"{prefix}-DELETE"] = "on"
        assert self.admin.post(url, fields).status_code == 302

    def given_the_role_of_a_viewer(self) -> None:
        self.page.post(PAGE, {"action": "role", "username": "edgar", "role": "viewer"})

    def switched_off(self) -> None:
        url = f"/admin/auth/user/{self.leaver.pk}/change/"
        fields = {"username": "edgar", "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
        assert self.admin.post(url, fields).status_code == 302

    def deleted(self) -> None:
        url = f"/admin/auth/user/{self.leaver.pk}/delete/"
        answer = self.admin.post(url, {"post": "yes"})
        assert answer.status_code == 302


EXITS: list[Callable[[Exits], None]] = [
    Exits.removed_on_the_page,
    Exits.removed_by_the_api,
    Exits.left_on_the_page,
    Exits.removed_in_the_list_of_the_admin,
    Exits.removed_inline_in_the_admin,
    Exits.given_the_role_of_a_viewer,
    Exits.switched_off,
    Exits.deleted,
]
