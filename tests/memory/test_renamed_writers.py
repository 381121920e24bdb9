"""Hand-written texts belong to their writer, also after the account is renamed or deleted."""

import pytest
from django.contrib.auth import get_user_model

from chat.models import Session
from memory import facts
from memory.forgetting.service import ForgetScope, forget
from memory.models import Chunk, Entry, EntryRevision, Fact
from memory.moderation import entry_operations
from memory.recall import indexing
from tests.memory.conftest import AT
from tests.memory.recall_helpers import say, talk

pytestmark = pytest.mark.django_db


@pytest.fixture
def written(project, owner, editor, remember):
    """A fact by the editor, and a memory that he wrote and the owner changed later."""
    statement = facts.Statement("vault", "opens with", "a number", AT)
    facts.create_fact(project.memberships.get(user=editor), statement)
    entry = remember("- By a model", granularity="day")
    entry_operations.edit(entry, "- By the editor", editor)
    entry_operations.edit(Entry.objects.get(), "- By the owner", owner)


def writers() -> set[str]:
    texts = (Fact, Entry, EntryRevision)
    return {name for model in texts for name in model.objects.values_list("written_by", flat=True)}


def rename(user, name: str) -> None:
    user.username = name
    user.save()


def test_texts_of_a_renamed_user_are_forgotten_with_the_user(written, project, editor):
    rename(editor, "edna")
    assert "edna" in writers() and "edgar" not in writers()
    receipt = forget(project, ForgetScope(user=editor.pk))
    assert (receipt.removed["entries"], receipt.removed["facts"]) == (1, 1)


def test_they_do_not_belong_to_the_next_user_with_the_former_name(
    written, project, editor, stranger
):
    rename(editor, "edna")
    rename(stranger, "edgar")
    receipt = forget(project, ForgetScope(user=stranger.pk))
    assert (receipt.removed["entries"], receipt.removed["facts"]) == (0, 0)


def test_nor_do_those_of_a_deleted_user(written, project, editor):
    editor.delete()
    assert "edgar (deleted)" in writers()
    successor = get_user_model().objects.create_user("edgar")
    receipt = forget(project, ForgetScope(user=successor.pk))
    assert (receipt.removed["entries"], receipt.removed["facts"]) == (0, 0)


def test_texts_of_the_model_with_a_users_name_stay_its_texts(entry, django_user_model):
    Entry.objects.update(written_by="extractive")
    user = django_user_model.objects.create_user("extractive")
    rename(user, "edna")
    user.delete()
    assert Entry.objects.get().written_by == "extractive"


def test_search_names_nobody_for_the_messages_of_a_deleted_user(project, owner, editor):
    talk(project, editor, "The cutover is on the third of March.")
    say(Session.objects.get(), owner, "The platform team owns billing from now on.")
    editor.delete()
    indexing.catch_up()
    speakers = Chunk.objects.order_by("first_seq").values_list("speaker", flat=True)
    assert list(speakers) == ["Someone", "olive"]
