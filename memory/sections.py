"""The prompt sections that memory adds to chat's."""

from chat.prompt import Item, Said, Section, Turn, share
from chat.window import PER_MESSAGE
from memory.layers import digests
from memory.layers.bank import render


@share(floor=0.1, ceiling=0.6)
def bank(turn: Turn) -> Section | None:
    """What the project's layers hold, within its memory budget."""
    project = turn.project
    if not project.memory_enabled:
        return None
    entries = {entry.pk: entry for entry in digests.bank_entries(project)}
    budget = min(project.bank_max_tokens, turn.budget - PER_MESSAGE)
    rendered = render([entry.as_item() for entry in entries.values()], budget)
    if not rendered.text:
        return None
    shown = [entries[pk] for pk in rendered.included]
    items = (
        Item(entry.granularity, entry.pk, entry.revision, entry.tokens, entry.label)
        for entry in shown
    )
    return Section("bank", (Said("system", rendered.text),), tuple(items))
