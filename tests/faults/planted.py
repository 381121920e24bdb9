"""Faults of the kinds that programs like this one had to publish advisories for.

With the folder `site` on PYTHONPATH, each process has the one that STRATA_FAULT names, and the
tests must fail. Each plants by replacing what the product calls, wherever it was imported to.
"""

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fault:
    """`kind` is its class in the advisories; `tests`, which should tell, are run first."""

    kind: str
    tests: tuple[str, ...]
    plant: Callable[[], None]


FAULTS: dict[str, Fault] = {}


def fault(kind: str, *tests: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(plant: Callable[[], None]) -> Callable[[], None]:
        FAULTS[plant.__name__] = Fault(kind, tests, plant)
        return plant

    return register


def replace(module: Any, name: str, new: Any) -> None:
    """Puts `new` in the place of `module.name`, and of every name that was imported from there."""
    old = getattr(module, name)
    setattr(module, name, new)
    for other in list(sys.modules.values()):
        if getattr(other, "__name__", "").split(".")[0] in ("projects", "chat", "memory", "config"):
            for attribute, value in list(vars(other).items()):
                if value is old:
                    setattr(other, attribute, new)


# Who may see what


@fault("missing ownership check", "tests/access/test_endpoints.py")
def anyone_is_a_member() -> None:
    from projects import permissions
    from projects.models import MemberRole, Membership

    right = permissions.membership

    def membership(user, slug, roles=MemberRole.values, token=None):
        with contextlib.suppress(permissions.Http404):
            return right(user, slug, roles, token)
        return Membership.objects.select_related("project").get(
            project__slug=slug, role=MemberRole.OWNER
        )

    replace(permissions, "membership", membership)


@fault("missing check of the role", "tests/access/test_endpoints.py")
def viewers_write() -> None:
    from projects import permissions

    right = permissions.membership

    def membership(user, slug, roles=None, token=None):
        return right(user, slug, token=token)

    replace(permissions, "membership", membership)


@fault("a token wider than it was made", "tests/access/test_endpoints.py")
def a_token_opens_every_project() -> None:
    from chat import permissions as chat_access
    from projects import permissions

    member, projects, sessions = (
        permissions.membership,
        permissions.projects_for,
        chat_access.sessions_for,
    )
    replace(
        permissions,
        "membership",
        lambda user, slug, roles=permissions.MemberRole.values, token=None: member(
            user, slug, roles
        ),
    )
    replace(permissions, "projects_for", lambda user, token=None: projects(user))
    replace(chat_access, "sessions_for", lambda user, token=None: sessions(user))


@fault("scopes that nobody asks for", "tests/access/test_endpoints.py")
def tokens_that_read_write() -> None:
    from projects.authentication import TokenScopePermission

    TokenScopePermission.has_permission = lambda self, request, view: True


@fault("private conversations shown", "tests/chat/test_api_sessions.py", "tests/chat")
def private_sessions_are_everybodys() -> None:
    from chat.models.sessions import SessionQuerySet

    SessionQuerySet.visible_to = lambda self, user: self.not_deleted().filter(
        project__memberships__user=user
    )


@fault("direct reference to an object (messages)", "tests/access/test_endpoints.py", "tests/chat")
def a_message_is_found_by_its_id_alone() -> None:
    from chat import permissions
    from chat.models import Message

    def message_for_reading(user, pk, token=None):
        rows_found = (
            Message.objects.select_related("author", "session__project").filter(pk=pk).first()
        )
        if rows_found is None:
            raise permissions.Http404
        return rows_found

    replace(permissions, "message_for_reading", message_for_reading)


@fault("direct reference to an object (files)", "tests/chat/test_attachments.py", "tests/chat")
def a_file_is_found_by_its_id_alone() -> None:
    from chat import attachments
    from chat.models import Attachment

    def for_reading(user, pk, token=None):
        rows_found = Attachment.objects.select_related("session__project").filter(pk=pk).first()
        if rows_found is None:
            raise attachments.Http404
        return rows_found

    replace(attachments, "attachment_for_reading", for_reading)


@fault("a filter by an id that the client gives", "tests/chat/test_attachments.py", "tests/chat")
def uploads_of_others_are_claimed() -> None:
    from chat import attachments
    from chat.models import Attachment

    replace(attachments, "unclaimed_uploads", lambda user: Attachment.objects.filter(message=None))


@fault(
    "a key of the client's that is not its own",
    "tests/chat/test_openai_sessions.py",
    "tests/chat/openai_api",
)
def a_session_header_opens_the_conversation_of_others() -> None:
    from chat.models import Session
    from chat.openai_api import sessions as keyed

    def session(self):
        rows = Session.objects.not_deleted().filter(
            project=self.project, source_key=self.source_key
        )
        return rows.select_related("project").first()

    def locked(item):
        chat_session = Session(project=item.project, creator=item.user, source_key=item.source_key)
        Session.objects.bulk_create([chat_session], ignore_conflicts=True)
        rows = Session.objects.select_for_update(of=("self",)).select_related("project")
        return rows.get(project=item.project, source_key=item.source_key)

    keyed.SessionKey.source_key = property(
        lambda self: keyed.source_key_for(f"{keyed.SOURCE_KEY_PREFIX}{self.name}")
    )
    keyed.SessionKey.find_session = session
    replace(keyed, "_get_or_create_locked", locked)


@fault("a cache shared by users", "tests/projects/test_api_idempotency.py")
def an_idempotency_key_is_everybodys() -> None:
    from projects.api import idempotency
    from projects.models import IdempotencyKey

    def of(cls, user, token, key, method, path, data):
        digest = idempotency.digest
        return cls(
            user.pk,
            token.project_id if token is not None else None,
            digest("key", [key]).hexdigest(),
            digest("request", [method, path], data).hexdigest(),
        )

    def find(self):
        rows_found = IdempotencyKey.objects.filter(key=self.key).first()
        if rows_found is not None and rows_found.request != self.request:
            raise idempotency.KeyReusedError
        return rows_found

    idempotency.KeyUse.of = classmethod(of)
    idempotency.KeyUse.find = find


@fault("a permission that was taken away", "tests/chat/test_admission.py", "tests/chat")
def streams_go_on_for_who_was_sent_away() -> None:
    from chat.streaming import poller

    replace(poller, "withdrawn_grants", lambda grants: frozenset())


@fault("recall across members", "tests/memory/test_recall.py", "tests/memory")
def recall_quotes_private_sessions() -> None:
    from memory.recall.search import RecallScope

    RecallScope.visibility_condition = lambda self: (
        "s.deleted_at IS NULL OR c.source_type = 'entry'"
    )


@fault("what is about one is told to all", "tests/memory/test_facts.py", "tests/memory")
def facts_about_a_member_are_the_projects() -> None:
    from memory.facts import permissions
    from memory.models import Fact

    replace(permissions, "facts_for", lambda member: Fact.objects.filter(project=member.project))


@fault("an export of more than its reader sees", "tests/memory/test_portability.py")
def exports_tell_private_sessions() -> None:
    from django.db.models import Q

    from memory.portability.tables import ExportScope

    ExportScope.readable = lambda self, path: Q()


# What leads outside, or inside


@fault("SSRF by redirect", "tests/projects/test_outbound.py", "tests/memory/webhooks")
def redirects_are_followed() -> None:
    from projects.core import outbound_http

    once = outbound_http.request

    def request(method, url, **options):
        answer = once(method, url, **options)
        if answer.status in (301, 302, 303, 307, 308) and "location" in answer.headers:
            return request(method, answer.headers["location"], **options)
        return answer

    replace(outbound_http, "request", request)


@fault("SSRF by a name that changes", "tests/projects/test_outbound.py")
def a_name_is_resolved_again_to_connect() -> None:
    import httpcore2

    from projects.core import outbound_http

    def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):
        outbound_http._public_addresses(host, port, self._deadline)
        plain = httpcore2.SyncBackend.connect_tcp
        stream = plain(self, host, port, timeout, local_address, socket_options)
        return outbound_http.DeadlineStream(stream, self._deadline)

    outbound_http.PublicAddressBackend.connect_tcp = connect_tcp


@fault("SSRF by IPv4 written as IPv6", "tests/projects/test_outbound.py")
def ipv6_is_taken_for_public() -> None:
    from projects.core import outbound_http

    right = outbound_http.is_allowed_address
    replace(
        outbound_http, "is_allowed_address", lambda address: address.version == 6 or right(address)
    )


# What text can do


@fault("sanitised before rendering", "tests/chat/test_markup.py")
def markup_is_sanitised_before_it_is_rendered() -> None:
    from django.utils.safestring import mark_safe

    from chat.templatetags import markup

    def markdown(text):
        return mark_safe(markup._renderer.render(markup.sanitise(text)))

    markup._renderer.options["html"] = True
    markup._renderer.validateLink = lambda url: True
    markup.register.filters["markdown"] = markdown
    replace(markup, "markdown", markdown)


@fault("names and titles unescaped", "tests/e2e/test_hostile_text.py", "tests/chat", "tests/memory")
def templates_escape_nothing() -> None:
    from django.template import engines

    engines["django"].engine.autoescape = False


@fault("a fence that its content closes", "tests/unit/test_quoting.py")
def quoted_text_may_close_its_fence() -> None:
    from chat.prompt import quoting

    replace(quoting, "quote", lambda text: text)


@fault("instructions held for nobody", "tests/unit/test_injection_detection.py", "tests/memory")
def nothing_reads_like_an_instruction() -> None:
    from memory.layers import injection_detection

    replace(injection_detection, "find_instructions", lambda text: frozenset())


@fault("a template that reaches the program", "tests/projects/test_instructions.py")
def personas_are_plain_templates() -> None:
    from jinja2 import Environment

    from projects import persona_template

    def check(template):
        Environment().from_string(template).render(persona_template.EXAMPLE)

    replace(persona_template, "check", check)


@fault("an archive that unpacks without end", "tests/chat/test_import_zip.py", "tests/chat")
def zip_files_are_not_measured() -> None:
    from chat.importers import zip_files

    replace(zip_files, "check_files", lambda files: None)


@fault("images served as they came", "tests/chat/test_images.py", "tests/chat")
def images_are_kept_as_they_came() -> None:
    import hashlib

    from chat.attachments import images

    def reencode(data):
        return images.EncodedImage(data, "image/png", 1, 1, hashlib.sha256(data).hexdigest())

    replace(images, "reencode", reencode)


@fault("forms taken from other sites", "tests/access/test_endpoints.py")
def forms_need_no_token() -> None:
    from django.middleware.csrf import CsrfViewMiddleware

    CsrfViewMiddleware.process_view = lambda self, request, *rest: None


# Who somebody is


@fault("passwords may be guessed", "tests/projects/accounts/test_signing_in.py")
def nobody_who_tries_has_to_wait() -> None:
    from allauth.core.internal import ratelimit

    ratelimit.apply_rate = lambda history, now, rate, dry_run=False: (True, history)


@fault("second factor passed by", "tests/projects/accounts/test_factors.py")
def the_password_is_enough() -> None:
    from allauth.mfa.stages import AuthenticateStage

    AuthenticateStage._should_handle = lambda self, request: False


@fault("second factors readable in a backup", "tests/projects/accounts/test_factors.py")
def factors_are_kept_as_they_are() -> None:
    from projects.accounts.mfa import StrataMFAAdapter

    StrataMFAAdapter.encrypt = StrataMFAAdapter.decrypt = lambda self, text: text


@fault("account taken over by an address", "tests/projects/accounts/test_oidc.py")
def an_address_need_not_be_verified() -> None:
    from projects.accounts.oidc import SocialAccountAdapter

    SocialAccountAdapter.can_authenticate_by_email = lambda self, login, email: True


@fault("signature not checked", "tests/projects/accounts/test_oidc.py")
def a_token_need_not_be_signed() -> None:
    from projects.accounts.oidc import OIDCAdapter

    del OIDCAdapter._decode_id_token


@fault("used twice at once", "tests/projects/accounts/test_invitations.py")
def two_take_a_link_for_one() -> None:
    from projects.models import Invitation, InvitationStatus

    Invitation.state = InvitationStatus.OPEN


@fault("sign-up by whoever comes", "tests/projects/accounts/test_signing_in.py")
def everybody_makes_an_account() -> None:
    from projects.accounts import adapter

    replace(adapter, "is_invited", lambda request: True)


@fault("signed out, but still in", "tests/projects/accounts/test_sessions.py")
def a_session_outlives_its_end() -> None:
    from allauth.usersessions.models import UserSession

    UserSession.end = UserSession.delete


# What should be gone


@fault("deleted, but still found", "tests/memory/test_forgetting.py", "tests/memory")
def chunks_outlive_what_was_forgotten() -> None:
    from memory.forgetting import stores

    [chunks] = [store for store in stores.STORES if store.name == "chunks"]
    object.__setattr__(chunks, "remove", lambda project, rows_found: 0)


@fault("deleted, but back with the next import", "tests/memory/test_forgetting.py", "tests/memory")
def imports_bring_back_what_was_forgotten() -> None:
    from memory.forgetting import tombstones

    replace(tombstones, "forgotten_subjects", lambda project, subjects: set())
