"""Signing in through an OpenID provider: what is asked of it, and who gets in as whom."""

import json
import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import OctKey
from sqlalchemy import delete

from grader_service.errors import ConfigurationError
from grader_service.settings import Settings
from grader_service.store.tables import EventRow
from grader_service.web.access import Role, Tokens
from grader_service.web.claims import Rules, SignInFailed
from grader_service.web.oidc import PENDING_S, configured
from grader_service.web.queries import EventFilter, events
from tests.hand_clock import HandClock
from tests.web.client import BOTH, OPERATOR_TOKEN, READ_ONLY, Client, served
from tests.web.openid_double import OTHER_KEY, back, sent_to, signed_in
from tests.web.openid_provider import CLIENT_SECRET, RULES, a_provider

SHARED = OctKey.import_key(CLIENT_SECRET)


@pytest.fixture
def port(page, page_store):
    """Of that page, with an audit log that is empty."""
    with page_store.transaction() as connection:
        connection.execute(delete(EventRow))
    return page


def test_the_provider_is_asked_with_pkce_state_and_nonce(port, double):
    """Each new for every sign-in; the code is exchanged with the verifier and the client's secret, which stays here."""
    client = Client(port)
    first, second = (sent_to(client.get("/login/oidc")) for _ in range(2))
    assert (first["response_type"], first["client_id"]) == ("code", "grader")
    assert first["redirect_uri"] == f"http://127.0.0.1:{port}/login/oidc/callback"
    assert first["scope"] == "openid profile email"
    assert first["code_challenge_method"] == "S256"
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name]) >= 20
        assert first[name] != second[name]
    double.hands_out(double.id_token(second["nonce"]))
    assert back(client, code="a%20code", state=second["state"]).status == 200
    (form,) = (form for path, form in double.asked if path == "/token")
    assert form["code"] == ["a code"]
    assert form["redirect_uri"] == [first["redirect_uri"]]
    assert len(form["code_verifier"][0]) >= 43
    assert CLIENT_SECRET not in json.dumps([first, form])


def test_the_cookie_on_the_way_says_nothing_and_goes_nowhere_else(port):
    """HttpOnly, for these two addresses, ten minutes; browsers bring it back from another site."""
    answer = Client(port).get("/login/oidc")
    cookie = answer.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=lax", "Path=/login/oidc", f"Max-Age={PENDING_S}"):
        assert part.lower() in cookie.lower()
    for secret in (sent_to(answer)["nonce"], sent_to(answer)["state"]):
        assert secret not in cookie


def test_operators_act_and_the_audit_log_has_their_name_and_subject(port, double, page_store):
    """The session's cookie is as strict as that of a token."""
    client, answer = signed_in(port, double, "/audit")
    assert answer.status == 200
    assert 'content="0; url=/audit"' in answer.text
    cookie = answer.headers["set-cookie"].lower()
    assert all(part in cookie for part in ("grader_session=", "httponly", "samesite=strict", "path=/"))
    assert "alice</bdi> (operator)" in client.get("/audit").text
    (event,) = events(page_store, EventFilter(kind="web_signed_in"))
    assert event.actor == "oidc:alice"
    assert event.detail == {"address": "127.0.0.1", "issuer": double.issuer, "subject": "id-of-alice"}
    assert client.act("/logout").status == 303
    assert client.get("/audit").status == 303


def test_viewers_read_and_leave_no_event(port, double, page_store):
    """As with a token."""
    client, answer = signed_in(port, double, groups=["grader-viewers", "others"])
    assert answer.status == 200
    assert "alice</bdi> (viewer)" in client.get("/").text
    assert "Sign in as operator" not in client.get("/").text
    assert client.get("/batches/new").status == 403
    assert not events(page_store, EventFilter())


def test_nobody_types_the_name_of_a_person(quick_store, double):
    """What a token's bearer calls themselves is never an actor that the provider vouches for."""
    with served(quick_store, BOTH, provider=a_provider(double.issuer)) as port:
        assert Client(port).sign_in(OPERATOR_TOKEN, "oidc:alice").status == 303
        assert signed_in(port, double)[1].status == 200
    assert [event.actor for event in events(quick_store, EventFilter())] == ["oidc:alice", "web:oidc:alice"]


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"key": OTHER_KEY}, "cannot be trusted"),
        ({"header": {"alg": "RS256", "kid": "unknown"}}, "cannot be trusted"),
        ({"header": {"alg": "HS256"}, "key": SHARED}, "cannot be trusted"),
        ({"header": {"alg": "none"}}, "cannot be trusted"),
        ({"iss": "https://evil.example"}, "claim “iss”"),
        ({"aud": "another-client"}, "claim “aud”"),
        ({"aud": "another-client", "azp": "grader"}, "claim “aud”"),
        ({"aud": ["grader", "another-client"], "azp": "another-client"}, "claim “azp”"),
        ({"aud": None}, "claim “aud”"),
        ({"nonce": "of-another-sign-in"}, "claim “nonce”"),
        ({"nonce": None}, "claim “nonce”"),
        ({"sub": None}, "claim “sub”"),
        ({"exp": None}, "claim “exp”"),
        ({"exp": 1_600_000_000}, "clocks do not agree"),
        ({"iat": 4_000_000_000, "exp": 4_000_000_300}, "clocks do not agree"),
    ],
    ids=[
        "another key",
        "unknown key",
        "client's secret",
        "unsigned",
        "issuer",
        "audience",
        "audience, authorized party",
        "authorized party",
        "no audience",
        "nonce",
        "no nonce",
        "nobody",
        "no end",
        "expired",
        "from the future",
    ],
)
def test_id_tokens_that_are_not_genuine_open_nothing(port, double, page_store, claims, said):
    """Whoever signed them, for whatever, whenever."""
    client, answer = signed_in(port, double, **claims)
    assert answer.status == 502
    assert said in answer.text
    assert "grader_session" not in str(answer.headers.get_all("set-cookie"))
    assert client.get("/").status == 303
    assert not events(page_store, EventFilter())


def test_a_little_difference_of_clocks_is_allowed(port, double):
    """A minute."""
    now = int(time.time())
    assert signed_in(port, double, exp=now - 20)[1].status == 200
    assert signed_in(port, double, iat=now + 20)[1].status == 200


@pytest.mark.parametrize(
    ("claims", "status", "said"),
    [
        ({"sub": "a\0b"}, 502, "claim “sub”"),
        ({"sub": "a" * 256}, 502, "claim “sub”"),
        ({"sub": 7}, 502, "claim “sub”"),
        ({"groups": ["staff"]}, 403, "You have no access"),
        ({"groups": None}, 403, "You have no access"),
        ({"groups": "staff grader-operators"}, 403, "You have no access"),
        ({"groups": {"grader-operators": True}}, 403, "You have no access"),
        ({"preferred_username": None}, 502, "GRADER_WEB_OIDC_NAME_CLAIM"),
        ({"preferred_username": ""}, 502, "GRADER_WEB_OIDC_NAME_CLAIM"),
        ({"preferred_username": " alice"}, 502, "GRADER_WEB_OIDC_NAME_CLAIM"),
        ({"preferred_username": "ali\u202ece"}, 502, "GRADER_WEB_OIDC_NAME_CLAIM"),
        ({"preferred_username": "a" * 151}, 502, "GRADER_WEB_OIDC_NAME_CLAIM"),
        ({"preferred_username": ["alice"]}, 502, "GRADER_WEB_OIDC_NAME_CLAIM"),
    ],
)
def test_persons_without_a_role_or_a_name_are_told_so(port, double, claims, status, said):
    """And are not signed in."""
    client, answer = signed_in(port, double, **claims)
    assert answer.status == status
    assert said in answer.text
    assert client.get("/").status == 303


def test_who_has_both_roles_is_an_operator():
    """Claims are lists or one text."""
    claims = {"sub": "1", "preferred_username": "Zoë"}
    person = RULES.person(claims | {"groups": ["grader-viewers", 7, "grader-operators"]})
    assert (person.role, person.name, person.subject) == (Role.OPERATOR, "Zoë", "1")
    assert RULES.person(claims | {"groups": "grader-viewers"}).role is Role.VIEWER


@pytest.mark.parametrize("rules", [("email", "groups"), ("preferred_username", "email")])
def test_addresses_count_only_when_verified(rules):
    """Else a person could enter an operator's."""
    rules = Rules(*rules, frozenset({"grader-operators", "ann@example.org"}), frozenset())
    claims = {"sub": "1", "preferred_username": "ann", "email": "ann@example.org", "groups": "grader-operators"}
    assert rules.person(claims | {"email_verified": True}).role is Role.OPERATOR
    for unsure in ({}, {"email_verified": False}, {"email_verified": "false"}):
        with pytest.raises(SignInFailed, match="email_verified"):
            rules.person(claims | unsure)


def test_a_sign_in_is_finished_by_the_browser_that_began_it(port, double):
    """Once: not with another state, another browser's cookie, no cookie, or a cookie of another process."""
    client, other = Client(port), Client(port)
    sent, others = sent_to(client.get("/login/oidc")), sent_to(other.get("/login/oidc"))
    double.hands_out(double.id_token(sent["nonce"]))
    asked = len(double.asked)
    for browser, state in (
        (client, others["state"]),
        (client, ""),
        (Client(port), sent["state"]),
        (Client(port, cookie="grader_oidc=x"), sent["state"]),
        (other, sent["state"]),
    ):
        for _ in range(2):
            answer = back(browser, code="a", state=state)
            assert answer.status == 400
            assert "This sign-in is over" in answer.text
    assert len(double.asked) == asked
    assert back(client, code="a", state=sent["state"]).status == 200
    assert back(client, code="a", state=sent["state"]).status == 400


def test_a_sign_in_may_take_ten_minutes(double):
    """By this server's clock, whatever the browser says."""
    clock = HandClock()
    provider = a_provider(double.issuer, clock=clock)
    for seconds, known in ((PENDING_S - 1, True), (PENDING_S + 1, False)):
        there, sealed = provider.begin("http://127.0.0.1/login/oidc/callback", "/")
        (state,) = parse_qs(urlsplit(there).query)["state"]
        clock.now += seconds
        if known:
            assert provider.resume(sealed, {"state": state}).target == "/"
        else:
            with pytest.raises(SignInFailed):
                provider.resume(sealed, {"state": state})


@pytest.mark.parametrize("target", ["//evil.example/", "/%5Cevil.example", "https://evil.example/", "javascript:1"])
def test_signing_in_leads_to_no_other_server(port, double, target):
    """Whatever the link said."""
    _, answer = signed_in(port, double, target)
    assert re.findall(r'url=([^"]*)"', answer.text) == ["/"]
    assert "evil" not in answer.text


def test_the_form_offers_what_is_set(quick_store, double):
    """Provider, tokens, or both; without a provider its addresses are not there."""
    with served(quick_store, READ_ONLY, provider=a_provider(double.issuer)) as port:
        page = Client(port).get("/login?next=/audit").text
        assert 'href="/login/oidc?next=%2Faudit"' in page
        assert 'name="token"' not in page
        assert Client(port).get("/").status == 303
        assert Client(port).get("/api/queue").status == 401
    with served(quick_store, BOTH, provider=a_provider(double.issuer)) as port:
        page = Client(port).get("/login").text
        assert "/login/oidc" in page
        assert 'name="token"' in page
    with served(quick_store, BOTH) as port:
        assert "/login/oidc" not in Client(port).get("/login").text
        answer = Client(port).get("/login/oidc")
        assert answer.status == 404
        assert "GRADER_WEB_OIDC_ISSUER" in answer.text


SET = {
    "web_oidc_issuer": "https://id.example.org",
    "web_oidc_client_id": "grader",
    "web_oidc_operators": "ops",
}


def test_settings_make_a_provider(tmp_path):
    """All that is needed, or nothing."""
    secret = tmp_path / "secret"
    secret.write_text(f"{CLIENT_SECRET}\n")
    assert configured(Settings()) is None
    assert configured(Settings(**SET, web_oidc_client_secret_file=secret)).host == "id.example.org"
    for name in SET:
        some = {key: value for key, value in SET.items() if key != name}
        with pytest.raises(ConfigurationError, match="set all of them or none"):
            configured(Settings(**some, web_oidc_client_secret_file=secret))
    with pytest.raises(ConfigurationError, match="GRADER_WEB_OIDC_CLIENT_SECRET_FILE"):
        configured(Settings(**SET))
    assert configured(Settings(web_oidc_client_secret_file="")) is None
    for issuer in ("http://id.example.org", "id.example.org", "file:///etc", "https://[x", "https://"):
        with pytest.raises(ConfigurationError, match="https://"):
            configured(Settings(**SET | {"web_oidc_issuer": issuer}, web_oidc_client_secret_file=secret))


def test_a_provider_closes_reading(quick_store, double):
    """Nobody reads without signing in; so the page may be served beyond this machine."""
    from grader_service.web.serving import make_site

    site = make_site(quick_store, Tokens(), "0.0.0.0", (), a_provider(double.issuer))  # noqa: S104
    assert not site.open_reading
