"""A user holds only as many open streams as allowed, at a real web process."""

from contextlib import ExitStack
from urllib.error import HTTPError

import pytest

from tests.chat.test_revocation import Listener, Request, _eventually
from tests.scripted import ScriptedModel
from tests.server import Web, installed, signed_in
from tests.torture.clients import Api

pytestmark = pytest.mark.process

MOST = 5


@pytest.mark.timeout(300)
def test_one_user_holds_no_more_streams_than_allowed(tmp_path):
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedModel())
        strata = stack.enter_context(installed(tmp_path / "strata", model))
        web = stack.enter_context(Web(strata, STRATA_STREAMS_PER_USER=str(MOST)))
        # It would wait for the streams that are open.
        stack.callback(web.kill)
        api = Api(web.url, strata.token)
        slug = api.call("POST", "projects/", {"name": "Billing"})["slug"]
        session = api.call("POST", f"projects/{slug}/sessions/", {})["id"]
        http_request = Request(f"{web.url}/projects/{slug}/chats/{session}/events/?version=999")
        browser = signed_in(web, "admin")
        listening = [Listener(browser, http_request) for _ in range(MOST)]
        assert all(stream.hears(": ping") for stream in listening)
        for _ in range(MOST):
            with pytest.raises(HTTPError) as refused:
                browser.open(http_request, timeout=30)
            assert (refused.value.code, refused.value.headers["Retry-After"]) == (429, "30")
        assert not any(stream.ended for stream in listening)
        # A message is answered nevertheless, and once the streams have ended, others may begin.
        api.call("POST", f"sessions/{session}/messages/", {"content": "When?"})
        web.kill()
        assert _eventually(lambda: not any(stream.is_alive() for stream in listening))
        web.start()
        assert Listener(signed_in(web, "admin"), http_request).hears(": ping")
