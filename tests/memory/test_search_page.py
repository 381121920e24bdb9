"""The search page."""

import re

import pytest

from chat.models import Visibility
from tests.html import compact
from tests.memory.conftest import AT
from tests.memory.file_helpers import add_read
from tests.memory.recall_helpers import talk

pytestmark = pytest.mark.django_db

URL = "/projects/billing/search/"
CUTOVER = "The cutover to the new database is on the third of March."
BILLING = "The platform team owns billing from now on."


@pytest.fixture
def look(client):
    def get(user, status: int = 200, **query) -> str:
        client.force_login(user)
        response = client.get(URL, query)
        assert response.status_code == status
        return response.content.decode()

    return get


def test_it_finds_messages_and_links_to_them(project, owner, look):
    session = talk(project, owner, "Something else altogether, about the weather.", CUTOVER)
    page = look(owner, q="When is the cutover?")
    assert f"/projects/billing/chats/{session.pk}/?through=2#m1" in page
    assert "<mark>cutover</mark>" in page
    assert "Similar words" in page


def test_without_words_it_lists_the_latest_messages(project, owner, look):
    talk(project, owner, CUTOVER)
    assert "third of March" in look(owner)
    assert "Similar words" not in look(owner)


def test_it_is_narrowed_by_day_and_person(project, owner, editor, look):
    project.share_raw_turns = True
    project.save()
    talk(project, owner, CUTOVER)
    talk(project, editor, BILLING)
    assert "platform team" not in look(owner, author="olive")
    assert "third of March" not in look(owner, author="edgar")
    assert "third of March" in look(owner, since="2026-03-01", until="2026-03-01")
    assert "third of March" not in look(owner, since="2026-03-02")
    assert "third of March" not in look(owner, until="2026-02-28")
    assert "third of March" in look(owner, until="9999-12-31")


def test_an_invalid_field_shows_its_error(project, owner, stranger, look):
    talk(project, owner, CUTOVER)
    for query in ({"since": "soon"}, {"q": "x" * 2_001}):
        page = look(owner, 400, **query)
        assert 'class="error"' in page and "third of March" not in page


def test_nobody_finds_what_is_anothers(project, owner, editor, stranger, look):
    talk(project, owner, CUTOVER, visibility=Visibility.PRIVATE)
    assert "third of March" not in look(editor, q="cutover")
    assert "No results." in look(editor, q="cutover")
    look(stranger, 404, q="cutover")


def test_markdown_is_rendered_and_its_words_are_marked(project, owner, look):
    session = talk(
        project, owner, "The **cutover** is near:\n\n- `step <one>` of [two](https://a.b)"
    )
    page = look(owner, q="cutover step two")
    assert "<strong><mark>cutover</mark></strong>" in page
    assert "<code><mark>step</mark> &lt;one&gt;</code>" in page
    assert ">two</a>" in page or "<mark>two</mark></a>" in page
    assert "**" not in page
    assert f">{session.label}<" in compact(page)


def test_markup_in_a_message_is_shown_as_text(project, owner, look):
    talk(project, owner, "The cutover <script>alert(1)</script> is in March, they say.")
    assert "<script>alert(1)" not in look(owner, q="cutover")


def test_many_results_take_no_more_queries(project, owner, client, django_assert_max_num_queries):
    for number in range(20):
        talk(project, owner, f"{CUTOVER} Number {number}.")
    client.force_login(owner)
    client.get(URL)
    with django_assert_max_num_queries(14):
        client.get(URL, {"q": "cutover"})


def test_summaries_and_facts_are_found_beside_messages(project, owner, look, day, entry):
    from memory import facts
    from memory.recall import indexing
    from projects.models import Membership

    statement = facts.Statement("replica", "stays", "seven days", AT)
    facts.create_fact(Membership.objects.get(project=project, user=owner), statement)
    indexing.catch_up()
    page = look(owner, q="How long does the replica stay?")
    assert f"/memory/{entry.pk}/" in page
    assert ">Facts</h2>" in page
    assert f"/memory/{day.pk}/" not in page
    page = look(owner, q="replica", what="day")
    assert "In: Days" in " ".join(page.split())
    assert f"/memory/{day.pk}/" in page
    assert ">Facts</h2>" not in page
    assert f"/memory/{day.pk}/" not in look(owner, q="replica", what="day", since="2026-03-13")
    assert f"/memory/{entry.pk}/" not in look(owner, q="replica", what="facts")
    assert ">Facts</h2>" in look(owner, q="replica", until="2026-03-12")
    assert ">Facts</h2>" not in look(owner, q="replica", since="2026-03-13")
    assert ">Memories</h2>" not in look(owner, q="replica", what="said")


def test_it_is_narrowed_to_one_chat(project, owner, look):
    talk(project, owner, CUTOVER)
    other = talk(project, owner, BILLING)
    page = look(owner, q="cutover or billing", session=str(other.pk))
    assert "platform team" in page and "third of March" not in page
    assert "Search all chats" in page


def test_hidden_and_withheld_text_is_not_found(project, viewer, look, day):
    day.withheld = True
    day.save()
    assert f"/memory/{day.pk}/" not in look(viewer, q="replica", what="day")


def test_files_are_found_with_a_link_to_the_passage(api, project, owner, look):
    talk(project, owner, "The torque of the bolts was discussed.")
    document = add_read(project, owner)
    query = {"q": "torque of the flange bolts"}
    everything, files = look(owner, **query), look(owner, **query, what="files")
    for page in (everything, files):
        assert ">Files</h2>" in page and "manual.md" in page
        assert f"/files/{document.pk}/?version=1&amp;at=2#p2" in page
    assert "was discussed" in everything and "was discussed" not in files
    assert ">Files</h2>" not in look(owner, **query, what="said")
    assert ">Files</h2>" not in look(owner, **query, author="olive")
    assert ">Files</h2>" not in look(owner, q="who pays the rent of the office?")
    found = api(owner).get(
        "/api/v1/projects/billing/recall/", query | {"source": "file", "limit": 30}
    )
    passages = [result["first_seq"] for result in found.json()["results"]]
    assert re.findall(r"at=(\d+)#", files) == [str(number) for number in passages]


def test_the_latest_passages_are_shown_without_words(project, owner, look):
    add_read(project, owner)
    assert "newton metres" in look(owner, what="files")
    assert "newton metres" not in look(owner)


def test_a_file_of_a_private_chat_is_found_by_its_owner_only(project, owner, editor, look):
    session = talk(project, owner, "Hello there.", visibility=Visibility.PRIVATE)
    add_read(project, owner, session=session)
    for filters in ({}, {"what": "files"}, {"session": str(session.pk)}):
        query = {"q": "torque of the flange bolts"} | filters
        assert "newton metres" in look(owner, **query)
        assert "newton metres" not in look(editor, **query)
