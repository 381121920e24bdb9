from dataclasses import dataclass
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from chat.conversations.branches import path_to


@dataclass(frozen=True)
class Node:
    pk: UUID
    parent_id: UUID | None


@st.composite
def trees(draw) -> list[Node]:
    nodes: list[Node] = []
    for _ in range(draw(st.integers(1, 30))):
        parent = draw(st.sampled_from([None, *nodes]))
        nodes.append(Node(uuid4(), parent.pk if parent else None))
    return nodes


def test_siblings_off_the_path_are_left_out():
    first = Node(uuid4(), None)
    answer, another = Node(uuid4(), first.pk), Node(uuid4(), first.pk)
    assert path_to([first, answer, another], another.pk) == [first, another]


def test_there_is_no_path_without_a_head():
    assert path_to([Node(uuid4(), None)], None) == []


@given(trees(), st.data())
def test_each_message_of_a_path_follows_its_parent(nodes, data):
    head = data.draw(st.sampled_from(nodes))
    path = path_to(nodes, head.pk)
    assert path[-1] == head
    assert path[0].parent_id is None
    assert all(child.parent_id == parent.pk for parent, child in zip(path, path[1:], strict=False))


def test_a_circle_ends():
    first_item, two = uuid4(), uuid4()
    assert len(path_to([Node(first_item, two), Node(two, first_item)], first_item)) == 2
