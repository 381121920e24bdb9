"""What a project knows, as sentences with their sources, and the decisions on them."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from chat.conversations.messages import draft, post_messages
from chat.models import Visibility
from memory import blocks, facts
from memory.facts import Statement
from memory.layers import lines
from memory.models import Activity, ActivityVerb, Block, Entry, Fact, FactStatus
from memory.profile import MAX_SENTENCES, personal_knowledge, project_knowledge
from projects.models import Membership
from tests.html import compact
from tests.memory.conftest import AT

pytestmark = pytest.mark.django_db


def member(project, user) -> Membership:
    return Membership.objects.select_related("project", "user").get(project=project, user=user)


def state(project, user, subject: str, predicate: str, object: str, **more) -> Fact:
    statement = Statement(subject, predicate, object, more.pop("at", AT), **more)
    return facts.create_fact(member(project, user), statement)[0]


@pytest.fixture
def digest(remember, entry):
    made = remember("", granularity="week", period_key="2026-W11")
    made.set_lines(lines.from_text("- Refunds lock their booking first\n- Prices rise", made.day))
    made.save()
    return made


@pytest.fixture
def known(project, owner, digest):
    """A fact, a digest and a pinned text."""
    state(project, owner, "billing", "is owned by", "the payments team")
    blocks.put(project, None, "letters", "# Letters\n- No exclamation marks", owner)
    return project


def texts(project, user) -> list[str]:
    return [sentence.text for sentence in project_knowledge(member(project, user))]


def test_sentences_come_from_facts_digests_and_pinned_text(known, viewer):
    assert texts(known, viewer) == [
        "Billing is owned by the payments team.",
        "Refunds lock their booking first.",
        "Letters.",
    ]


def test_only_what_is_true_now_and_new_is_a_sentence(known, owner, digest):
    state(known, owner, "billing", "is owned by", "nobody", at=timezone.now() - timedelta(days=1))
    state(known, owner, "refunds", "lock first", "their booking")
    facts.hide(state(known, owner, "tax", "is", "12 %"), owner)
    about_me = state(known, owner, "I", "prefer", "tea", user_id=owner.pk)
    assert texts(known, owner) == [
        "Billing is owned by nobody.",
        "Refunds lock first their booking.",
        "Prices rise.",
        "Letters.",
    ]
    assert [s.source.key for s in personal_knowledge(member(known, owner))][0] == (
        f"fact:{about_me.pk}"
    )


def test_withheld_and_hidden_summaries_are_no_sentences(known, owner, digest):
    Entry.objects.filter(pk=digest.pk).update(withheld=True)
    assert "Refunds lock their booking first." not in texts(known, owner)
    Entry.objects.filter(pk=digest.pk).update(withheld=False, state="hidden")
    assert "Refunds lock their booking first." not in texts(known, owner)


def test_the_title_of_anothers_private_chat_is_not_shown(client, project, entry, owner, editor):
    chat = entry.session
    chat.visibility, chat.title = Visibility.PRIVATE, "My salary"
    chat.save()
    entry.set_lines(entry.read_lines())
    entry.save()
    for user, shown in ((owner, False), (editor, True)):
        client.force_login(user)
        page = client.get(reverse("overview", args=["billing"])).content.decode()
        section = page[page.index('id="knows"') :]
        assert "The replica stays seven days" in section
        assert ("My salary" in section[: section.index("</ul>")]) == shown


def test_there_are_never_more_than_can_be_read(known, owner, django_assert_max_num_queries):
    for number in range(40):
        state(known, owner, f"ship {number}", "has", f"{number} cabins")
    asking = member(known, owner)
    with django_assert_max_num_queries(10):
        sentences = project_knowledge(asking)
    assert len(sentences) == MAX_SENTENCES


def test_both_pages_and_about_me_show_them(client, known, editor):
    client.force_login(editor)
    mine = state(known, editor, "Edgar", "drinks", "tea", user_id=editor.pk)
    for name in ("project", "overview"):
        html = compact(client.get(reverse(name, args=["billing"])).content.decode())
        assert "What this project knows" in html and "Refunds lock their booking first." in html
        assert f"fact:{mine.pk}" not in html
    html = compact(client.get(reverse("about-me", args=["billing"])).content.decode())
    assert "Edgar drinks tea." in html
    assert f'<input type="hidden" name="source" value="fact:{mine.pk}">' in html


def test_about_me_are_lines_of_what_i_wrote(project, editor, owner, entry, chat):
    question, answer = chat.messages.order_by("seq")
    made = lines.from_text("- It stays for seven days\n- Edgar asked about the replica", entry.day)
    entry.set_lines(
        [replace(made[0], sources=(answer.pk,)), replace(made[1], sources=(question.pk,))]
    )
    entry.save()
    sentences = personal_knowledge(member(project, editor))
    assert [sentence.text for sentence in sentences] == ["Edgar asked about the replica."]
    assert personal_knowledge(member(project, owner)) == []


def test_about_me_are_lines_of_what_i_wrote_in_a_chat_of_another(project, owner, entry, chat):
    message = post_messages(chat, [draft("Vienna hosts the cluster.", author=owner)])[0]
    entry.set_lines(
        [
            replace(line, sources=(message.pk,))
            for line in lines.from_text("- Vienna hosts the cluster", entry.day)
        ]
    )
    entry.save()
    sentences = personal_knowledge(member(project, owner))
    assert [sentence.text for sentence in sentences] == ["Vienna hosts the cluster."]


def test_the_name_of_a_speaker_stays_as_it_is(project, owner, entry):
    entry.set_lines(lines.from_text("- edgar: “The replica stays”", entry.day))
    entry.save()
    assert texts(project, owner) == ["edgar: “The replica stays”"]


def test_a_viewer_decides_nothing(client, known, viewer):
    client.force_login(viewer)
    html = client.get(reverse("overview", args=["billing"])).content.decode()
    assert "What this project knows" in html and 'class="judge"' not in html


def decide(client, sentence, action: str, text: str = "", **more) -> str:
    """Decides as the page would; returns what the next page says."""
    sent = {
        "source": sentence.source.key,
        "version": sentence.version,
        "place": sentence.place,
        "action": action,
        "text": text,
        "back": "overview",
    }
    answer = client.post(reverse("knowledge", args=["billing"]), sent | more, follow=True)
    assert answer.redirect_chain[0][0] == "/projects/billing/overview/#knows"
    return answer.content.decode()


def test_a_confirmed_sentence_is_marked_until_it_changes(client, known, owner):
    client.force_login(owner)
    fact, line, _pinned = project_knowledge(member(known, owner))
    for sentence in (fact, line):
        decide(client, sentence, "confirm")
    sentences = project_knowledge(member(known, owner))
    assert [sentence.checked for sentence in sentences] == [True, True, False]
    assert Activity.objects.filter(verb=ActivityVerb.CHECKED, by=owner).count() == 2
    decide(client, fact, "edit", "the platform team")
    changed = project_knowledge(member(known, owner))[0]
    assert (changed.text, changed.checked) == ("Billing is owned by the platform team.", False)


def test_a_wrong_sentence_goes(client, known, owner):
    client.force_login(owner)
    for sentence in project_knowledge(member(known, owner)):
        html = decide(client, sentence, "wrong")
        kind, _, pk = sentence.source.key.partition(":")
        if kind != "block":
            assert f'<a href="{reverse(kind, args=["billing", pk])}">Open ' in html
    assert Fact.objects.get().state == FactStatus.HIDDEN
    assert Entry.objects.get(granularity="week").summary == "- Prices rise"
    assert Block.objects.get().content == "- No exclamation marks"


def test_a_line_and_pinned_text_are_edited_in_place(client, known, editor):
    client.force_login(editor)
    fact, line, pinned = project_knowledge(member(known, editor))
    # An owner decides about facts of the project.
    assert [s.removable for s in (fact, line, pinned)] == [False, True, True]
    decide(client, line, "edit", "Refunds lock nothing")
    decide(client, pinned, "edit", "Mail")
    assert Entry.objects.get(granularity="week").summary.startswith("- Refunds lock nothing")
    # The mark of a heading or of a list is no part of the sentence.
    assert Block.objects.get().content == "# Mail\n- No exclamation marks"
    decide(client, project_knowledge(member(known, editor))[2], "edit", "* Letters")
    assert Block.objects.get().content == "* Letters\n- No exclamation marks"


@pytest.mark.parametrize(
    "more",
    [
        {"action": "explode"},
        {"version": "9"},
        {"version": "x"},
        {"place": "77"},
        {"source": "entry:nothing"},
        {"source": "block:nothing"},
        {"source": ""},
        {"action": "edit", "text": " "},
    ],
)
def test_a_decision_on_nothing_changes_nothing(client, known, owner, more):
    client.force_login(owner)
    _fact, line, _pinned = project_knowledge(member(known, owner))
    assert 'class="notice error"' in decide(client, line, **{"action": "wrong"} | more)
    assert texts(known, owner)[1] == "Refunds lock their booking first."


def test_a_correction_of_a_sentence_that_changed_meanwhile_can_be_copied(client, known, owner):
    client.force_login(owner)
    line = project_knowledge(member(known, owner))[1]
    html = decide(client, line, "edit", "Refunds lock nothing", version="9")
    assert "You wrote: “Refunds lock nothing”" in html
    assert "You wrote" not in decide(client, line, "wrong", version="9")


def test_anothers_pinned_text_is_not_changed(client, known, owner, editor):
    mine = blocks.put(known, owner, "mine", "My own", owner)
    client.force_login(editor)
    sent = {"source": f"block:{mine.pk}", "version": 1, "place": 0, "action": "wrong"}
    client.post(reverse("knowledge", args=["billing"]), sent)
    assert Block.objects.filter(pk=mine.pk).exists()
