"""Images in a request: shown to the model, and kept where the conversation is."""

import base64

import openai
import pytest

from tests.chat.pictures import jpeg, png

RED = "data:image/png;base64," + base64.b64encode(png()).decode()


def looking(text: str, *addresses: str) -> dict:
    images = [
        {"type": "image_url", "image_url": {"url": one, "detail": "low"}} for one in addresses
    ]
    return {"role": "user", "content": [{"type": "text", "text": text}, *images]}
