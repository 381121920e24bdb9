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
        asked = Request(f"{web.url}/projects/{slug}/chats/{session}/events/?version=999")
        browser = signed_in(web, "admin")
        listening = [Listener(browser, asked) for _ in range(MOST)]
        assert all(one.hears(": ping") for one in listening)
        for _ in range(MOST):
            with pytest.raises(HTTPError) as refused:
                browser.open(asked, timeout=30)
            assert (refused.value.code, refused.value.headers["Retry-After"]) == (429, "30")
        assert not any(one.ended for one in listening)
        # A message is answered nevertheless, and once the streams have ended, others may begin.
        api.call("POST", f"sessions/{session}/messages/", {"content": "When?"})
        web.kill()
        assert _eventually(lambda: not any(one.is_alive() for one in listening))
        web.start()
        assert Listener(signed_in(web, "admin"), asked).hears(": ping")
