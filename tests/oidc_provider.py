"""An OpenID Connect provider at the wire, with the users that a test defines."""

import json
import time
from base64 import urlsafe_b64encode
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "strata", "client-secret"


class Provider:
    """Answers each browser as `person`, whose claims are in its ID tokens (RS256) and its userinfo.

    `claims` change those of the ID token alone, `userinfo` those of the userinfo; `signer` signs.
    The ID token has no claims that are in `left_out`.
    """

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.reset()

    def __enter__(self) -> "Provider":
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reset(self) -> None:
        self.person: dict[str, Any] = {"sub": "1", "preferred_username": "nina"}
        self.claims: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}
        self.left_out: set[str] = set()
        self.signer = self.key
        self.queries: dict[str, dict[str, str]] = {}

    def authorize(self, query: dict[str, str]) -> str:
        """Where a browser is led that came with `query`."""
        assert query["client_id"] == CLIENT
        assert "openid" in query["scope"].split()
        assert query["code_challenge_method"] == "S256"
        code = f"code-{len(self.queries)}"
        self.queries[code] = query
        back = {"code": code, "state": query["state"]}
        return f"{query['redirect_uri']}?{urlencode(back)}"

    def token(self, form: dict[str, str]) -> dict[str, Any]:
        """For a code, once."""
        query = self.queries.pop(form["code"])
        assert form["redirect_uri"] == query["redirect_uri"]
        assert (form["client_id"], form["client_secret"]) == (CLIENT, SECRET)
        challenge = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest())
        assert challenge.rstrip(b"=").decode() == query["code_challenge"]
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300}
        claims |= self.person | self.claims
        for name in self.left_out:
            del claims[name]
        signed = jwt.encode(claims, self.signer, "RS256", {"kid": "one"})
        return {"access_token": "access", "token_type": "Bearer", "id_token": signed}

    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def person_at_userinfo(self) -> dict[str, Any]:
        return self.person | self.userinfo

    def keys(self) -> dict[str, Any]:
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [public | {"kid": "one", "alg": "RS256", "use": "sig"}]}


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            if address.path == "/authorize":
                query = {name: values[0] for name, values in parse_qs(address.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(query))
                self.end_headers()
            elif address.path == "/userinfo":
                assert self.headers["Authorization"] == "Bearer access"
                self._answer(provider.person_at_userinfo())
            elif address.path == "/keys":
                self._answer(provider.keys())
            else:
                assert address.path == "/.well-known/openid-configuration"
                self._answer(provider.description())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer(provider.token({name: all_[0] for name, all_ in parse_qs(body).items()}))

        def _answer(self, claims: dict[str, Any]) -> None:
            body = json.dumps(claims).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
