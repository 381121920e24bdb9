"""Settings of the data folder, keys, hosts, cookies, TLS and the content security policy."""

import os
import re
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from csp.constants import NONCE, NONE, SELF
from django.http.request import split_domain_port
from pydantic import BeforeValidator
from pydantic_settings import NoDecode

from config.settings.env import (
    DEFAULT_DATA_DIR,
    Variables,
    folder_error,
    generated_secret,
    host_names,
    keep_out_of_logs,
    load,
    networks,
    number,
    origin,
    private_folder,
    var,
)


class ServerVariables(Variables):
    title = "Server"

    data_dir: Path = var(
        "STRATA_DATA_DIR",
        DEFAULT_DATA_DIR,
        "the path of a folder",
        "Database, attachments, and secrets made on the first start. A relative path begins in the "
        "folder in which a command is started.",
        example="/srv/strata",
        shown_default="`var/` in a checkout; the user's data folder for the installed package",
        in_readme=True,
    )
    port: int = var(
        "PORT",
        8000,
        "a port number from 1 to 65535",
        "The port of the web server.",
        in_readme=True,
        ge=1,
        le=65535,
    )
    url: Annotated[str, BeforeValidator(origin)] = var(
        "STRATA_URL",
        "",
        "an address without a path, https://strata.example.org",
        "The address at which people reach the server: the base of links in mail, invitations "
        "and the API. By default, links use the host of the request. With `https://`, "
        "cookies are marked as secure, HTTP redirects to HTTPS, and HSTS is sent.",
        example="https://strata.example.org",
        in_readme=True,
    )
    allowed_hosts: Annotated[list[str], NoDecode, BeforeValidator(host_names)] = var(
        "STRATA_ALLOWED_HOSTS",
        [],
        "host names separated by commas",
        "Further host names of the server, besides `localhost`, `127.0.0.1` and `[::1]`. Requests "
        "to any port of a host are accepted.",
        example="strata.internal",
    )
    trusted_proxies: int = number(
        "STRATA_TRUSTED_PROXIES",
        0,
        (0, 10),
        "The number of proxies in front of the server. Each must add to `X-Forwarded-For` and set "
        "`X-Forwarded-Proto`. A request with fewer entries counts as from the address that "
        "connected, and is logged as `forwarded_for_ignored`.",
        "proxies",
        example="1",
    )
    secret_key: str = var(
        "STRATA_SECRET_KEY",
        "",
        "a long random text",
        "Signs sessions and links, encrypts stored secrets, and derives the secrets of webhooks.",
        shown_default="made on the first start",
        secret=True,
    )
    admin_password: str = var(
        "STRATA_ADMIN_PASSWORD",
        "",
        "the first administrator's password",
        "The password of the user `admin`, which the first start creates.",
        shown_default="made and printed",
        secret=True,
        in_readme=True,
    )
    debug: bool = var(
        "STRATA_DEBUG",
        False,
        "on or off",
        "Show Django's debug pages. Never use this on a server that others can reach.",
    )
    outbound_allow: Annotated[
        list[IPv4Network | IPv6Network], NoDecode, BeforeValidator(networks)
    ] = var(
        "STRATA_OUTBOUND_ALLOW",
        [],
        "networks such as 10.1.0.0/16 or addresses, separated by commas",
        "Internal networks or addresses that webhooks, image addresses and model servers from the "
        "Models page may lead to. The public internet needs no entry.",
        example="10.1.0.0/16,fd12:3456::/48",
        shown_default="none",
    )


_env = load(ServerVariables)
try:
    # The folder can be entered by other accounts if this process runs as root, because the embedded
    # PostgreSQL then runs as another account.
    DATA_DIR = private_folder(_env.data_dir.resolve(), is_passable=os.geteuid() == 0)
except OSError as _error:
    raise folder_error("STRATA_DATA_DIR", _error) from None
SECRET_KEY = _env.secret_key or generated_secret(DATA_DIR / "secret_key")
DEBUG = _env.debug
keep_out_of_logs(SECRET_KEY)
PORT = _env.port
ADMIN_PASSWORD = _env.admin_password
URL = _env.url
HTTPS = URL.startswith("https://")
_authority = urlsplit(URL).netloc
_hosts = [*_env.allowed_hosts, "localhost", "127.0.0.1", "[::1]"]
ALLOWED_HOSTS = [re.sub(r":\d+$", "", host) for host in _hosts]
# With the port, for a proxy that leaves it out of the Host header.
CSRF_TRUSTED_ORIGINS = [
    f"https://{'*' if host.startswith('.') else ''}{host}" for host in _hosts if "*" not in host
]
if URL:
    ALLOWED_HOSTS.insert(0, split_domain_port(_authority)[0])
    CSRF_TRUSTED_ORIGINS.insert(0, URL)
ALLAUTH_TRUSTED_PROXY_COUNT = _env.trusted_proxies
OUTBOUND_ALLOW = _env.outbound_allow
DEFAULT_EXCEPTION_REPORTER_FILTER = "config.http.error_pages.SecretSettingsFilter"
# Not `no-referrer`: browsers would send “Origin: null” with forms, which the CSRF check rejects.
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = HTTPS
if HTTPS:
    # Browsers accept cookies with these names only over TLS and from this host, so that other hosts
    # of the domain cannot set them.
    # https://httpwg.org/http-extensions/draft-ietf-httpbis-rfc6265bis.html#name-the-__host-prefix
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
    LANGUAGE_COOKIE_NAME = "__Host-language"
    SECURE_SSL_REDIRECT, SECURE_SSL_HOST = True, _authority
    # Monitoring on the same machine requests these paths without a proxy.
    SECURE_REDIRECT_EXEMPT = ["^healthz$", "^readyz$", "^metrics$"]
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
if ALLAUTH_TRUSTED_PROXY_COUNT:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# HSTS for subdomains and preload lists are decisions of the owner of the domain, because other
# services may use the subdomains.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "style-src": [SELF, NONCE],
        "script-src": [SELF, NONCE],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
