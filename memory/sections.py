"""The prompt sections that memory adds to chat's."""

from chat.prompt import Item, Said, Section, Turn, share
from chat.window import PER_MESSAGE
from memory.layers.rendering import rendered_bank

# Where the context is too small for the whole budget, the bank takes so many eighths of it, and
# not what happens to be left, so that its text does not change with the length of each message.
STEPS = 8


@share(floor=0.1, ceiling=0.6)
def bank(turn: Turn) -> Section | None:
    """What the project's layers hold, within its memory budget."""
    project = turn.project
    if not project.memory_enabled:
        return None
    rendered = rendered_bank(project, _stepped(project.bank_max_tokens, turn.budget - PER_MESSAGE))
    if not rendered.text:
        return None
    items = (
        Item(entry.granularity, entry.id, entry.revision, entry.tokens, entry.label)
        for entry in rendered.included
    )
    return Section("bank", (Said("system", rendered.text),), tuple(items))


def _stepped(budget: int, room: int) -> int:
    """The most eighths of `budget` that fit into `room`, in tokens."""
    return budget * min(max(STEPS * room // budget, 0), STEPS) // STEPS
