"""The images of a request: in it as data: URLs, or elsewhere."""

import base64
import binascii
import re
import time
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from chat import images
from chat.api.completions.errors import Refused
from chat.images import Encoded
from projects import outbound

# Seconds that all images of a request may take to come in.
FETCH_SECONDS = 20.0
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[^;,]*)*),", re.IGNORECASE)


class Images:
    """Images by the address under which a request names them, each made anew once."""

    def __init__(self) -> None:
        self.loaded: dict[str, Encoded] = {}
        self._left = FETCH_SECONDS

    def load(self, addresses: Iterable[str]) -> None:
        """Raises Refused for what is no image, or cannot be had."""
        for address in addresses:
            if address not in self.loaded:
                self.loaded[address] = _made_anew(self._bytes(address))

    def _bytes(self, address: str) -> bytes:
        head = _DATA.match(address)
        if head is not None:
            return _inside(address[head.end() :], (head[2] or "").lower())
        began = time.monotonic()
        data = _fetched(address, max(self._left, 0.0))
        self._left -= time.monotonic() - began
        return data


def _made_anew(data: bytes) -> Encoded:
    try:
        return images.reencode(data)
    except images.Refused as refused:
        raise Refused(str(refused), "messages", "invalid_image") from refused


def _inside(data: str, parameters: str) -> bytes:
    """What a data: URL holds."""
    if len(data) > images.MOST_BYTES * 4 // 3 + 4:
        raise Refused(str(images.TOO_BIG), "messages", "invalid_image")
    if "base64" not in parameters:
        return unquote_to_bytes(data)
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused("The image is not in base64.", "messages", "invalid_image") from error


def _fetched(address: str, seconds: float) -> bytes:
    """The file at an address of the public internet."""
    seconds = min(seconds, outbound.TOTAL_SECONDS)
    try:
        answer = outbound.request(
            "GET",
            address,
            headers={"Accept": "image/*"},
            max_bytes=images.MOST_BYTES,
            seconds=seconds,
        )
    except outbound.OutboundError as error:
        raise _unavailable(str(error)) from error
    if answer.status != 200:
        raise _unavailable(f"It is answered there with the status {answer.status}.")
    return answer.body


def _unavailable(why: str) -> Refused:
    reason = f"The image at this address cannot be had. {why}"
    return Refused(reason, "messages", "invalid_image_url")
