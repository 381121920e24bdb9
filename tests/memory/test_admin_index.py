"""The first page of the admin: what waits for somebody."""

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from memory.models import EntryStatus

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(remember):
    remember("Talk.", granularity="week", state=EntryStatus.PROPOSED)
    remember("More talk.", granularity="day", state=EntryStatus.STALE)


def test_the_queues_are_counted_and_lead_to_what_waits(admin_client, waiting):
    page = admin_client.get("/admin/").content.decode()
    assert "<b>1</b> Memories to review" in page
    assert "<b>1</b> Memories to rewrite" in page
    assert "<b>0</b> Facts to review" in page
    for line in page.split('strata-queues"')[-1].split('href="')[1:8]:
        address = line.split('"')[0].replace("&amp;", "&")
        # A filter that the list does not know would lead back to all rows.
        assert admin_client.get(address).status_code == 200, address


def test_a_user_without_the_permission_sees_no_queue(client, waiting):
    staff = get_user_model().objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_cursor"))
    client.force_login(staff)
    page = client.get("/admin/").content.decode()
    assert "could not be summarised" in page
    assert "to review" not in page
