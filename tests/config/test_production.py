"""An installation that people reach over HTTPS: what it says of itself, and to whom."""

import json
import os
import pickle
import subprocess
import sys
import textwrap
from typing import Any

import pytest
from django.conf import settings
from kombu import Connection, Producer, Queue
from kombu.exceptions import ContentDisallowed

from config.celery import app
from config.settings.env import origin
from tests.server import ROOT

pytestmark = pytest.mark.process

PRODUCTION = {
    "STRATA_URL": "https://strata.example.org",
    "STRATA_TRUSTED_PROXIES": "1",
    "STRATA_ALLOWED_HOSTS": "strata.internal:8443",
    "STRATA_DEBUG": "",
}
ASK = """
    import json
    import django
    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.templatetags.static import static
    from django.test import Client
    call_command("check", deploy=True, fail_level="WARNING")
    def ask(path="/accounts/login/", host="strata.example.org", **headers):
        answer = Client(headers={"host": host} | headers).get(path)
        cookies = [one.OutputString() for one in answer.cookies.values()]
        received = {name.lower(): value for name, value in answer.headers.items()}
        return {"status": answer.status_code, "headers": received, "cookies": cookies}
    proxied = {"x-forwarded-proto": "https"}
    print(json.dumps({
        "proxied": ask(**proxied),
        "plain": ask(),
        "elsewhere": ask(host="evil.example", **proxied),
        "alive": ask("/healthz", host="127.0.0.1"),
        "script": ask(static("js/strata.js"), **proxied),
        "hosts": settings.ALLOWED_HOSTS,
        "origins": settings.CSRF_TRUSTED_ORIGINS,
        "session": [settings.SESSION_COOKIE_NAME, settings.SESSION_COOKIE_SECURE],
    }))
"""


def fetch_answers(variables: dict[str, str]) -> dict[str, Any]:
    """What an installation with `variables` answers; it must pass Django's own check first."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ASK)],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answers


@pytest.fixture(scope="module")
def production() -> dict[str, Any]:
    return fetch_answers(PRODUCTION)


def test_the_address_says_which_hosts_and_origins_are_ours(production):
    own = ["strata.example.org", "strata.internal", "localhost", "127.0.0.1", "[::1]"]
    assert production["hosts"] == own
    assert production["origins"][:2] == [
        "https://strata.example.org",
        "https://strata.internal:8443",
    ]
    assert production["elsewhere"]["status"] == 400


def test_a_request_without_tls_is_redirected_to_https(production):
    assert production["proxied"]["status"] == 200
    assert production["plain"]["status"] == 301
    assert (
        production["plain"]["headers"]["location"] == "https://strata.example.org/accounts/login/"
    )
    assert production["alive"]["status"] == 200


def test_browsers_get_hsts(production):
    assert production["proxied"]["headers"]["strict-transport-security"] == "max-age=31536000"
    assert "strict-transport-security" not in production["plain"]["headers"]


def test_check_deploy_silences_only_hsts_for_the_domain():
    """The domain's owner decides on subdomains (W005) and preloading (W021)."""
    check = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy"],
        cwd=ROOT,
        env=os.environ | PRODUCTION,
        capture_output=True,
        text=True,
        check=True,
    )
    assert check.stdout.strip() == "System check identified no issues (2 silenced)."
    assert settings.SILENCED_SYSTEM_CHECKS == ["security.W005", "security.W021"]


def test_cookies_are_of_this_host_alone(production):
    assert production["session"] == ["__Host-sessionid", True]
    assert production["proxied"]["cookies"]
    for cookie in production["proxied"]["cookies"]:
        assert cookie.startswith("__Host-")
        assert "; Secure" in cookie
        assert "; Path=/" in cookie
        assert "; SameSite=Lax" in cookie
        assert "Domain" not in cookie


@pytest.mark.parametrize("answer", ["proxied", "script"])
def test_every_answer_is_confined(production, answer):
    headers = production[answer]["headers"]
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'self'"
    for directive in ("object-src", "base-uri", "frame-ancestors"):
        assert policy[directive] == "'none'"
    assert policy["form-action"] == "'self'"
    for forbidden in ("unsafe-inline", "unsafe-eval", "*", "http:", "https:"):
        assert forbidden not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]


def test_out_of_the_box_localhost_needs_no_tls(client, db):
    answer = client.get("/accounts/login/", headers={"host": "localhost:8000"})
    assert answer.status_code == 200
    assert not answer.cookies["csrftoken"]["secure"]


def test_without_a_proxy_the_header_of_tls_is_not_trusted():
    answers = subprocess.run(
        [sys.executable, "-c", "from config import settings as it; print(vars(it).keys())"],
        cwd=ROOT,
        env=os.environ | PRODUCTION | {"STRATA_TRUSTED_PROXIES": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "SECURE_SSL_REDIRECT" in answers
    assert "SECURE_PROXY_SSL_HEADER" not in answers


@pytest.mark.parametrize(
    "address",
    [
        "strata.example.org",
        "ftp://strata.example.org",
        "https://",
        "https://strata.example.org/here",
        "https://strata.example.org/?a",
        "https://ann:secret@strata.example.org",
        "https://strata.example.org:99999",
        "https://strata.example.org:port",
        "https://strata.example.org:0",
    ],
)
def test_an_invalid_server_address_is_refused(address):
    with pytest.raises(ValueError, match=r".*"):
        origin(address)


def test_an_address_may_name_a_port():
    assert origin("https://Strata.example.org:8443/") == "https://strata.example.org:8443"
    assert origin("http://[::1]:8000") == "http://[::1]:8000"


def test_workers_take_data_and_no_objects():
    for kind in ("task", "result", "event"):
        assert app.conf[f"{kind}_serializer"] == "json"
    assert app.conf.accept_content == app.conf.result_accept_content == ["json"]
    with Connection("memory://") as connection:
        queue = Queue("hostile", channel=connection.default_channel)
        queue.declare()
        Producer(connection).publish(
            pickle.dumps(print),
            routing_key="hostile",
            content_type="application/x-python-serialize",
            content_encoding="binary",
        )
        refused = []
        consumer = app.amqp.TaskConsumer(connection.default_channel, queues=[queue])
        consumer.on_decode_error = lambda message, error: refused.append(error)
        consumer.register_callback(lambda body, message: refused.append(body))
        with consumer:
            connection.drain_events(timeout=2)
    assert [type(response) for response in refused] == [ContentDisallowed]
