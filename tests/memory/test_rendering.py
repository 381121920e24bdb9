"""The bank is rendered once per change, and its version shows each change."""

from datetime import UTC, datetime, timedelta

import pytest

from chat.conversations.messages import ask, draft, post_messages
from chat.conversations.sessions import create_session, update_session
from chat.prompt.builder import Turn, build
from memory.forgetting.service import ForgetScope, forget
from memory.layers import bank_cache, cycle
from memory.layers.bank_cache import rendered_bank
from memory.layers.conversations import summarise
from memory.models import RenderedBank
from memory.moderation import entry_operations

pytestmark = pytest.mark.django_db


def later(minutes=60):
    return datetime.now(UTC) + timedelta(minutes=minutes)


@pytest.fixture
def session(project, owner):
    session = create_session(project, owner)
    post_messages(session, [draft("The cutover is on 3 March.", author=owner)])
    return session


@pytest.fixture
def entry(session):
    return summarise(session.pk, later())


def test_an_unchanged_bank_takes_one_query(entry, project, django_assert_num_queries):
    first = rendered_bank(project)
    with django_assert_num_queries(1):
        bank = rendered_bank(project)
    assert bank == first
    assert first.version == 1
    assert "3 March" in first.text


@pytest.mark.parametrize("change", ["edit", "hide", "budget"])
def test_every_change_of_the_text_raises_the_version(change, entry, project, session, owner):
    before = rendered_bank(project)
    if change == "edit":
        entry_operations.edit(entry, "- The cutover is on 4 April.", owner)
    elif change == "hide":
        entry_operations.set_hidden(entry, True)
    else:
        project.bank_max_tokens = 10
        project.save()
    after = rendered_bank(project)
    assert after.text != before.text
    assert after.version == before.version + 1


def test_a_new_title_changes_the_labels_but_not_the_text(entry, project, session):
    before = rendered_bank(project)
    update_session(session, title="Moving day")
    after = rendered_bank(project)
    assert (after.text, after.version) == (before.text, before.version)
    assert "Moving day" in after.included[0].label


def test_a_change_that_leaves_the_text_alone_leaves_the_version_alone(entry, project, owner):
    before = rendered_bank(project)
    entry_operations.pin(entry, True)
    after = rendered_bank(project)
    assert (after.text, after.version) == (before.text, before.version)


def test_the_version_goes_on_rising_through_a_forgetting(entry, project, session):
    assert rendered_bank(project).version == 1
    forget(project, ForgetScope(session=session.pk))
    bank = RenderedBank.objects.get()
    assert (bank.text, bank.included, bank.version) == ("", [], 1)
    assert rendered_bank(project).text == ""
    assert rendered_bank(project).version == 2


def test_text_that_is_forgotten_while_it_is_rendered_is_not_stored(
    entry, project, session, monkeypatch
):
    render = bank_cache._render

    def forget_meanwhile(*args):
        rendered = render(*args)
        monkeypatch.setattr(bank_cache, "_render", render)
        forget(project, ForgetScope(session=session.pk))
        return rendered

    monkeypatch.setattr(bank_cache, "_render", forget_meanwhile)
    assert rendered_bank(project).text == ""
    assert RenderedBank.objects.get().text == ""


def test_a_bank_that_was_never_rendered_is_locked_by_a_forgetting(entry, project, session):
    receipt = forget(project, ForgetScope(session=session.pk))
    bank = RenderedBank.objects.get()
    assert (bank.text, bank.version, receipt.removed["rendered_bank"]) == ("", 0, 0)


def test_forgetting_text_outside_the_bank_keeps_its_version(entry, project, owner):
    before = rendered_bank(project)
    other = create_session(project, owner)
    [post] = post_messages(other, [draft("Nobody summarised this.", author=owner)])
    forget(project, ForgetScope(message=post.pk))
    assert rendered_bank(project).version == before.version


def test_the_front_of_the_prompt_is_the_same_to_the_byte_between_turns(entry, project, owner):
    talk = create_session(project, owner)
    fronts = []
    for text in ("Short?", "A question that is a good deal longer. " * 80):
        question, _ = ask(talk, text, owner)
        built = build(Turn(talk, question))
        fronts.append(built.messages[0].text)
    assert fronts[0] == fronts[1]
    assert "3 March" in fronts[0]


def test_in_a_small_context_the_bank_does_not_change_with_the_length_of_the_message(
    project, owner, settings
):
    settings.CONTEXT_TOKENS = 2_000
    project.chat_model = "openai-chat:small"
    project.save()
    for number in range(40):
        talk = create_session(project, owner)
        words = f"Build {number} takes {number + 10} minutes, is owned by team {number} and runs."
        post_messages(talk, [draft(words, author=owner)])
    cycle.run(later())
    talk = create_session(project, owner)
    fronts = set()
    for length in (1, 20, 45, 70):
        question, _ = ask(talk, "word " * length, owner)
        fronts.add(build(Turn(talk, question)).messages[0].text)
    assert len(fronts) == 1
    assert "takes" in fronts.pop()
