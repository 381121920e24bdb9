"""Having something forgotten: the question, the preview, the deed, the receipt."""

import re
from datetime import UTC, datetime
from functools import reduce

import pytest
from django.contrib.auth.models import Permission

from chat.conversations.generation import finalise
from chat.conversations.messages import draft, post_message, post_messages
from chat.conversations.sessions import create_session
from chat.models import Message, Session, Visibility
from memory import facts
from memory.forgetting.stores import STORES
from memory.models import (
    Activity,
    ActivityVerb,
    Chunk,
    Entry,
    EntryRevision,
    EntryStatus,
    Fact,
    FactSource,
    FactStatus,
)
from memory.recall import indexing
from memory.templatetags.activity import REMOVED_LABELS
from projects.services import create_project
from tests.html import compact
from tests.memory.conftest import AT

pytestmark = pytest.mark.django_db

FORGET = "/projects/billing/memory/forget/"
SECRET = "The vault opens with the number nine four seven two."


@pytest.fixture
def secret_message(chat, editor) -> Message:
    return post_message(chat, SECRET, author=editor)


@pytest.fixture
def preview(client):
    def get(user, /, **fields):
        client.force_login(user)
        return client.get(FORGET, fields)

    return get


@pytest.fixture
def forget(client):
    def post(user, /, **fields):
        client.force_login(user)
        return client.post(FORGET, {"reason": "private", **fields}, follow=True)

    return post


def text_of(response) -> str:
    return " ".join(response.content.decode().split())


def test_a_message_is_previewed_and_nothing_changes(preview, owner, secret_message):
    text = text_of(preview(owner, message=secret_message.pk))
    assert SECRET in text
    assert "<dt>1</dt><dd>message or reply to it</dd>" in text
    assert "Forget permanently" in text
    assert Message.objects.filter(text=SECRET).exists()
    assert not Activity.objects.filter(verb=ActivityVerb.FORGOTTEN).exists()


def test_then_it_goes_and_there_is_a_receipt(forget, owner, secret_message):
    text = text_of(forget(owner, message=secret_message.pk))
    assert not Message.objects.filter(text=SECRET).exists()
    act = Activity.objects.get(verb=ActivityVerb.FORGOTTEN)
    assert (act.by, act.reason) == (owner, "private")
    assert str(act.pk) in text
    assert "1 phrase was searched for" in text
    assert "<b>not found</b>" in text
    assert "vault" not in text


def test_a_chat_is_forgotten_with_everything_in_it(forget, preview, owner, chat, entry):
    assert "The cutover" in text_of(preview(owner, session=chat.pk))
    forget(owner, session=chat.pk)
    assert not Session.objects.exists()
    assert not Entry.objects.exists()


def test_a_memory_is_forgotten_and_its_messages_stay(forget, owner, entry):
    forget(owner, entry=entry.pk)
    assert not Entry.objects.exists()
    assert Message.objects.filter(remembered=False).count() == 2


def test_its_messages_go_too_where_that_is_wanted(forget, preview, owner, entry):
    text = compact(text_of(preview(owner, entry=entry.pk)))
    assert "<legend>Also forget the 2 original messages?</legend>" in text
    # The first answer leaves nothing, and is chosen.
    assert answers(text) == [("on", True), ("off", False)]
    leaves_nothing, keeps = text.split("data-answer=")[1:]
    assert "<dt>2</dt><dd>messages" in leaves_nothing
    assert "<dd>messages" not in keeps
    assert "2 original messages are kept in their chats." in keeps
    forget(owner, entry=entry.pk, sources="on")
    assert not Message.objects.exclude(text="").exists()


def answers(page: str) -> list[tuple[str, bool]]:
    """The answers about the original messages, and whether they are chosen."""
    radios = re.findall(r'<input type="radio" name="sources" value="(\w+)"( checked)?', page)
    return [(value, bool(chosen)) for value, chosen in radios]


def test_who_may_not_forget_the_messages_is_not_asked(
    forget, preview, editor, project, owner, remember
):
    statement = facts.Statement("vault", "opens with", "a number", AT)
    fact, _ = facts.create_fact(project.memberships.get(user=editor), statement)
    chat = create_session(project, owner, visibility=Visibility.PROJECT)
    message = post_message(chat, SECRET, author=editor)
    source = {"session": chat, "message": message, "entry": remember("- A vault", chat)}
    FactSource.objects.create(project=project, fact=fact, valid_from=AT, confidence=1, **source)
    assert answers(compact(text_of(preview(editor, fact=fact.pk)))) == []
    assert answers(compact(text_of(preview(owner, fact=fact.pk)))) == [("on", True), ("off", False)]
    assert preview(editor, fact=fact.pk, sources="on").status_code == 404
    forget(editor, fact=fact.pk)
    assert not Fact.objects.exists()
    assert Message.objects.get(pk=message.pk).text == SECRET


def test_an_answer_stays_while_the_preview_is_updated(forget, owner, entry, echoed):
    page = compact(text_of(forget(owner, entry=entry.pk, sources="off", preview="yes")))
    assert answers(page) == [("on", False), ("off", True)]
    assert Entry.objects.exists()


def test_nobody_is_asked_about_messages_that_are_gone(preview, owner, entry):
    Message.objects.update(text="", forgotten_at=AT)
    assert answers(compact(text_of(preview(owner, entry=entry.pk)))) == []


def test_the_receipt_tells_originals_from_other_places_with_the_same_words(
    client, forget, owner, project, chat, remember
):
    post_message(chat, SECRET, author=owner)
    summary = remember(f"- {SECRET}", chat, last_seq=3)
    elsewhere = create_session(project, owner)
    post_message(elsewhere, f"I repeat: {SECRET}", author=owner)
    page = compact(text_of(forget(owner, entry=summary.pk, sources="off")))
    originals, others = page.split("The 3 original messages are kept</h3>")[1].split("</ul>")[:2]
    assert [f"through={seq}#m{seq}" in originals for seq in (1, 2, 3)] == [True] * 3
    assert str(elsewhere.pk) not in originals
    assert "The same words appear in 1 other place</h3>" in others
    assert str(elsewhere.pk) in others and str(chat.pk) not in others


def test_a_receipt_without_other_places_says_so(forget, owner, chat, remember):
    post_message(chat, SECRET, author=owner)
    page = text_of(forget(owner, entry=remember(f"- {SECRET}", chat, last_seq=3).pk, sources="off"))
    assert "Apart from the original messages, it was found nowhere." in page
    assert "The same words appear" not in page


def test_reasons_start_empty_and_are_optional(forget, preview, owner, secret_message):
    page = text_of(preview(owner, message=secret_message.pk))
    assert '<option value="" selected>' in page
    forget(owner, message=secret_message.pk, reason="")
    assert Activity.objects.get(verb=ActivityVerb.FORGOTTEN).reason == "other"


def test_owners_are_asked_whose_words_or_from_when(preview, owner, editor, project):
    text = text_of(preview(owner))
    assert 'name="user"' in text
    assert 'type="datetime-local"' in text
    assert '<option value="edgar">' in text


def test_everything_by_somebody_goes(forget, preview, owner, editor, chat):
    assert "All messages from edgar" in text_of(preview(owner, user="edgar"))
    forget(owner, user="edgar")
    assert not Message.objects.filter(author=editor).exists()


def test_before_is_a_moment_in_the_projects_zone(forget, preview, owner, project):
    project.timezone = "Pacific/Kiritimati"
    project.save()
    talk = create_session(project, owner)
    # 09:30 on the first on Kiritimati.
    at = datetime(2024, 12, 31, 19, 30, tzinfo=UTC)
    post_messages(talk, [draft("Old.", author=owner, created_at=at), draft("New.", author=owner)])
    assert "No text is deleted" in text_of(preview(owner, before="2025-01-01T09:00"))
    assert "before 1 Jan 2025, 10:00" in text_of(preview(owner, before="2025-01-01T10:00"))
    forget(owner, before="2025-01-01T10:00")
    assert list(talk.messages.values_list("text", flat=True)) == ["", "New."]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"user": "nobody"}, "No member or author has this username."),
        ({"before": "soon"}, "Enter a valid date/time."),
        ({"user": "", "before": ""}, "Choose a person, a date, or both."),
    ],
)
def test_an_unknown_reference_is_refused_beside_the_field(
    preview, owner, project, fields, complaint
):
    response = preview(owner, **fields)
    assert response.status_code == 400
    assert complaint in text_of(response)


def test_a_time_that_the_projects_zone_does_not_have_is_refused(preview, owner, project):
    project.timezone = "America/New_York"
    project.save()
    assert preview(owner, before="0001-01-01T00:00Z").status_code == 400


def test_accounts_outside_of_the_project_are_not_revealed(preview, owner, project, stranger):
    assert "No member or author has this username" in text_of(preview(owner, user="stan"))


def test_without_a_reason_of_ours_nothing_goes(forget, owner, secret_message):
    assert forget(owner, message=secret_message.pk, reason="whim").status_code == 400
    assert Message.objects.filter(text=SECRET).exists()


def test_editors_viewers_and_strangers_have_nothing_shared_forgotten(
    forget, preview, owner, editor, viewer, stranger, secret_message, entry
):
    Message.objects.update(author=owner)
    Session.objects.update(creator=owner)
    wishes = (
        {"message": secret_message.pk},
        {"session": secret_message.session_id},
        {"entry": entry.pk},
        {"user": "olive"},
        {"before": "2030-01-01T00:00"},
        {},
    )
    for user in (editor, viewer, stranger):
        for wish in wishes:
            assert preview(user, **wish).status_code == 404
            assert forget(user, **wish).status_code == 404
    assert Message.objects.filter(text=SECRET).exists()


def test_the_creator_of_a_private_chat_may_forget_its_words(
    forget, preview, editor, secret_message, entry
):
    Session.objects.update(visibility=Visibility.PRIVATE)
    assert preview(editor, message=secret_message.pk).status_code == 200
    assert preview(editor, entry=entry.pk).status_code == 200
    assert preview(editor, session=secret_message.session_id, user="edgar").status_code == 200
    assert forget(editor, session=secret_message.session_id).status_code == 200
    assert not Session.objects.exists()


def test_a_private_chat_of_somebody_else_is_not_there_for_owners(preview, owner, secret_message):
    Session.objects.update(visibility=Visibility.PRIVATE)
    assert preview(owner, message=secret_message.pk).status_code == 404
    assert preview(owner, session=secret_message.session_id).status_code == 404


def test_objects_of_another_project_get_404(client, owner, secret_message, entry):
    create_project(owner, name="Other", slug="other")
    client.force_login(owner)
    for query in (
        {"message": secret_message.pk},
        {"session": secret_message.session_id},
        {"entry": entry.pk},
    ):
        assert client.get(FORGET, query).status_code == 200
        assert client.get(FORGET.replace("billing", "other"), query).status_code == 404


def test_the_receipt_counts_what_still_waits(client, forget, owner, secret_message, remember, chat):
    summary = remember("- A vault, and the cutover", chat, last_seq=3)
    text = text_of(forget(owner, message=secret_message.pk))
    assert "<b>1 of 1</b> is still waiting" in text
    assert 'data-poll="?part=waiting"' in text
    Entry.objects.filter(pk=summary.pk).update(state=EntryStatus.LIVE)
    act = Activity.objects.get(verb=ActivityVerb.FORGOTTEN)
    part = client.get(f"/projects/billing/memory/receipts/{act.pk}/?part=waiting")
    assert "has been rewritten" in text_of(part)
    assert "<html" not in text_of(part)


def test_the_receipt_leads_to_replies_and_places_that_the_reader_may_open(
    client, forget, owner, viewer, secret_message, remember, chat, project
):
    summary = remember("- A vault, and the cutover", chat, last_seq=3)
    elsewhere = create_session(project, owner)
    reply = post_message(elsewhere, "", role="assistant")
    item = {"kind": "conversation", "id": str(summary.pk), "revision": 1, "tokens": 9}
    receipt = {"budget": 9, "sections": [{"name": "bank", "tokens": 9, "items": [item]}]}
    Message.objects.filter(pk=reply.pk).update(status="streaming")
    finalise(Message.objects.get(pk=reply.pk), "Something.", "complete", {"receipt": receipt})
    post_message(elsewhere, f"I repeat: {SECRET}", author=owner)
    text = text_of(forget(owner, message=secret_message.pk))
    place = f"/projects/billing/chats/{elsewhere.pk}/?through="
    assert f"{place}1#m1" in text
    assert f"{place}2#m2" in text
    Session.objects.filter(pk=elsewhere.pk).update(visibility=Visibility.PRIVATE)
    client.force_login(viewer)
    act = Activity.objects.get(verb=ActivityVerb.FORGOTTEN)
    text = text_of(client.get(f"/projects/billing/memory/receipts/{act.pk}/"))
    assert str(elsewhere.pk) not in text
    assert "1 in a chat that you cannot open" in text
    assert "1 place that you cannot open" in text


def test_a_receipt_is_for_members(client, forget, owner, stranger, secret_message):
    forget(owner, message=secret_message.pk)
    act = Activity.objects.get(verb=ActivityVerb.FORGOTTEN)
    client.force_login(stranger)
    assert client.get(f"/projects/billing/memory/receipts/{act.pk}/").status_code == 404
    other = Activity.objects.create(project=act.project, verb=ActivityVerb.PINNED)
    client.force_login(owner)
    assert client.get(f"/projects/billing/memory/receipts/{other.pk}/").status_code == 404


def test_forgetting_is_in_reach_for_those_who_may(client, owner, editor, secret_message, entry):
    links = {
        f"/projects/billing/chats/{secret_message.session_id}/": [
            f"{FORGET}?message={secret_message.pk}",
            f"{FORGET}?session={secret_message.session_id}",
        ],
        f"/projects/billing/memory/{entry.pk}/": [f"{FORGET}?entry={entry.pk}"],
        "/projects/billing/memory/": [f'"{FORGET}"'],
    }
    for page, wanted in links.items():
        client.force_login(owner)
        text = text_of(client.get(page))
        assert [link for link in wanted if link not in text] == []
        client.force_login(editor)
        # What they said themselves is theirs to have forgotten.
        own = [f"{FORGET}?message={pk}" for pk in Message.objects.values_list("pk", flat=True)]
        text = text_of(client.get(page))
        assert FORGET not in reduce(lambda left, link: left.replace(link, ""), own, text)
    Session.objects.update(visibility=Visibility.PRIVATE)
    assert FORGET in text_of(client.get(f"/projects/billing/chats/{secret_message.session_id}/"))


def test_from_a_memory_all_messages_of_its_author_can_be_forgotten(
    preview, forget, owner, editor, chat, entry
):
    page = text_of(preview(owner, entry=entry.pk))
    assert f'href="{FORGET}?user=edgar"' in page
    assert f'href="{FORGET}?session={chat.pk}"' in page
    assert "All messages from edgar, with the replies to them." in text_of(
        preview(owner, user="edgar")
    )
    forget(owner, user="edgar")
    assert not Entry.objects.exists()
    assert not Message.objects.filter(author=editor, forgotten_at=None).exists()


def test_options_for_others_words_need_the_right_to_forget_them(
    preview, editor, owner, chat, secret_message
):
    post_message(chat, "Of the owner.", author=owner)
    page = text_of(preview(editor, message=secret_message.pk))
    assert f'href="{FORGET}?user=edgar"' in page
    assert f"?session={chat.pk}" not in page
    assert "Also forget replies that used" not in page
    assert preview(editor, message=secret_message.pk, replies="on").status_code == 404


@pytest.fixture
def echoed(project, owner, entry) -> Message:
    """A reply in another chat whose prompt held the entry, and that says it again."""
    other = create_session(project, owner, visibility="project")
    post_message(other, "What of the cutover?", author=owner)
    item = {"kind": "conversation", "id": str(entry.pk), "revision": 1, "tokens": 1, "label": ""}
    receipt = {"sections": [{"name": "bank", "items": [item]}]}
    return post_message(other, "The replica stays.", role="assistant", receipt=receipt)


def test_exposed_replies_stay_unless_replies_are_forgotten_too(
    preview, forget, owner, entry, echoed
):
    assert "1 reply used this text and is kept." in text_of(preview(owner, user="edgar"))
    page = text_of(preview(owner, user="edgar", replies="on"))
    assert "used this text and is kept" not in page
    assert re.search(r'name="replies"[^>]* checked', page)
    forget(owner, user="edgar", replies="on")
    echoed.refresh_from_db()
    assert (echoed.text, echoed.forgotten_at is not None) == ("", True)


def test_a_reply_that_quotes_an_excerpt_is_listed(
    project, owner, editor, chat, secret_message, preview
):
    indexing.catch_up()
    chunk = Chunk.objects.get(session=chat, text__contains="vault")
    other = create_session(project, owner, visibility="project")
    receipt = {"sections": [{"name": "details", "items": [{"id": str(chunk.pk)}]}]}
    post_message(other, "Nine four seven two.", role="assistant", receipt=receipt)
    assert "1 reply used this text and is kept." in text_of(
        preview(owner, message=secret_message.pk)
    )


@pytest.fixture
def hidden_words(project, owner, remember):
    """The secret in a private chat of the owner: its title, summaries, an old version, a fact."""
    fields = {"visibility": Visibility.PRIVATE, "creator": owner, "project": project}
    chats = [Session.objects.create(**fields) for _ in range(3)]
    proposed = remember(SECRET, chats[0], state=EntryStatus.PROPOSED)
    approved = remember("- A number", chats[1])
    remember(SECRET, chats[2], state=EntryStatus.STALE, withheld=True)
    EntryRevision.objects.create(
        project=project,
        entry=approved,
        revision=1,
        summary=SECRET,
        written_by="scripted",
        written_at=AT,
    )
    fact = Fact.objects.create(
        project=project,
        subject="the vault",
        predicate="opens with the number nine",
        object="four seven two",
        valid_from=AT,
        state=FactStatus.PROPOSED,
        written_by="scripted",
    )
    FactSource.objects.create(
        project=project,
        fact=fact,
        session=chats[0],
        message=post_message(chats[0], "A number.", author=owner),
        entry=proposed,
        valid_from=AT,
        confidence=0.7,
    )


def make_staff(user, right: str) -> None:
    """Let `user` sign in to the admin with this right, or leave them as they are without one."""
    user.is_staff = bool(right)
    user.save()
    user.user_permissions.set(Permission.objects.filter(codename=right))


@pytest.mark.parametrize("right", ["", "view_entry", "delete_entry"])
def test_a_preview_does_not_tell_what_memory_hides_from_the_requester(
    api, project, owner, editor, secret_message, hidden_words, right
):
    def found(user) -> list[str]:
        wish = {"message": secret_message.pk, "preview": True}
        answer = api(user).post("/api/v1/projects/billing/forget/", wish, format="json")
        return sorted(place["where"] for place in answer.json()["search"]["found"])

    make_staff(editor, right)
    everything = ["entry", "entry", "fact", "revision"]
    assert found(editor) == (everything if right == "delete_entry" else [])
    # What awaits the owner's review is found for the owner, and withheld text for nobody.
    assert found(owner) == ["entry", "fact", "revision"]


def test_what_the_requester_may_see_is_still_found(
    preview, project, editor, secret_message, remember
):
    remember(SECRET, Session.objects.create(project=project, creator=editor))
    assert "The same words" in text_of(preview(editor, message=secret_message.pk))


@pytest.mark.parametrize("right", ["", "view_entry", "delete_entry"])
def test_a_preview_does_not_tell_what_others_keep_private(
    preview, project, owner, editor, secret_message, right
):
    """The editor guesses a sentence of a private chat, and asks where else its words are."""
    private = create_session(project, owner, visibility=Visibility.PRIVATE)
    post_message(private, SECRET, author=owner)
    make_staff(editor, right)
    text = text_of(preview(editor, message=secret_message.pk))
    assert ("The same words" in text) == (right == "delete_entry")
    assert "The same words" in text_of(preview(owner, message=secret_message.pk))


def test_an_editor_reads_why_everything_of_theirs_needs_an_owner(preview, editor, entry):
    assert preview(editor, user="edgar").status_code == 200
    EntryRevision.objects.create(
        project=entry.project,
        entry=entry,
        revision=1,
        summary="- Mine",
        written_by="edgar",
        written_at=AT,
    )
    response = preview(editor, user="edgar")
    assert response.status_code == 403
    assert "You have changed texts that others also wrote." in text_of(response)


def test_each_count_of_a_receipt_has_a_label():
    assert {store.name for store in STORES} == REMOVED_LABELS.keys()
