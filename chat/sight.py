"""Which images of a conversation a model is shown, and what they cost."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

# Anthropic takes more, but then no image of more than 2,000 pixels a side.
# https://docs.claude.com/en/docs/build-with-claude/vision
MOST_IMAGES = 20


@dataclass(frozen=True)
class Image:
    """An image as it stands in a prompt: where its bytes are kept, and what else is known of it.

    `path` is its name in the default storage; one that is kept nowhere has its `data` instead.
    Width and height are in pixels.
    """

    id: UUID
    media_type: str
    description: str
    width: int
    height: int
    path: str = ""
    data: bytes = field(default=b"", repr=False)

    @property
    def tokens(self) -> int:
        """What it costs, by the dearer of two formulas.

        OpenAI: 85 and 170 for each tile of 512 pixels, once its shorter side is scaled to 768.
        https://platform.openai.com/docs/guides/images-vision#calculating-costs
        Anthropic: a token for each 750 pixels, at most 1,600.
        https://docs.claude.com/en/docs/build-with-claude/vision#calculate-image-costs
        """
        scale = min(1.0, 768 / min(self.width, self.height))
        tiles = math.ceil(self.width * scale / 512) * math.ceil(self.height * scale / 512)
        return max(85 + 170 * tiles, min(1_600, math.ceil(self.width * self.height / 750)))

    @property
    def note(self) -> str:
        """What stands in its place for who cannot see it."""
        said = " ".join(self.description.split())
        return f"[image: {said}]" if said else "[image]"


def choose(newest_first: Iterable[Image], budget: int, limit: int = MOST_IMAGES) -> set[UUID]:
    """The images that are shown: the newest, at most `limit` and together `budget` tokens."""
    chosen: set[UUID] = set()
    for image in newest_first:
        budget -= image.tokens
        if budget < 0 or len(chosen) >= limit:
            break
        chosen.add(image.id)
    return chosen
