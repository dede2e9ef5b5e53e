"""Signing in through an OpenID provider: what is asked of it, and what of its answers is refused."""

import json
import re
import time
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import KeySet, OctKey
from sqlalchemy import delete

from grader_service.errors import ConfigurationError
from grader_service.settings import Settings
from grader_service.store.engine import Store
from grader_service.store.tables import EventRow
from grader_service.web import bounded_session
from grader_service.web.access import Role, Tokens
from grader_service.web.bounded_session import LONGEST
from grader_service.web.claims import Rules, SignInFailed
from grader_service.web.oidc import PENDING_S, configured
from grader_service.web.queries import EventFilter, events
from tests.hand_clock import HandClock
from tests.web.client import BOTH, OPERATOR_TOKEN, READ_ONLY, Client, served
from tests.web.openid_double import KEY, OTHER_KEY, openid_double
from tests.web.openid_provider import CLIENT_SECRET, RULES, a_provider

SHARED = OctKey.import_key(CLIENT_SECRET)


@pytest.fixture(scope="module")
def provider_double():
    """One for all tests."""
    with openid_double() as made:
        yield made


@pytest.fixture
def double(provider_double):
    """A provider that says what the test wants."""
    provider_double.forget()
    return provider_double


@pytest.fixture(scope="module")
def page_store(folder):
    """Of that page."""
    opened = Store(f"sqlite:///{folder}/grader.db")
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def page(page_store, provider_double):
    """Where nobody gets in but through the provider."""
    with served(page_store, READ_ONLY, provider=a_provider(provider_double.issuer)) as at:
        yield at


@pytest.fixture
def port(page, page_store):
    """Of that page, with an audit log that is empty."""
    with page_store.transaction() as connection:
        connection.execute(delete(EventRow))
    return page


def sent_to(answer):
    """The parameters that a browser takes along to the provider."""
    assert answer.status == 303, answer.text
    return {name: value for name, (value,) in parse_qs(urlsplit(answer.headers["location"]).query).items()}


def back(client, **parameters):
    """The callback, with these parameters."""
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return client.get(f"/login/oidc/callback?{query}")


def signed_in(port, double, target="/", **claims):
    """Somebody who came back with an ID token of these claims, and the answer."""
    client = Client(port)
    sent = sent_to(client.get(f"/login/oidc?next={target}"))
    double.hands_out(double.id_token(**{"nonce": sent["nonce"]} | claims))
    return client, back(client, code="a", state=sent["state"])


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


@pytest.mark.parametrize(
    ("parameters", "status", "said"),
    [
        ({"error": "access_denied"}, 403, "You were not signed in"),
        ({"error": "invalid_scope", "error_description": "%3Cscript%3E"}, 502, "“invalid_scope”"),
    ],
)
def test_a_provider_that_says_no_is_quoted(port, double, parameters, status, said):
    """After the state was seen to be that of this sign-in."""
    client = Client(port)
    sent = sent_to(client.get("/login/oidc"))
    assert back(client, **parameters, state="other").status == 400
    answer = back(client, **parameters, state=sent["state"])
    assert answer.status == status
    assert said in answer.text
    assert "<script>" not in answer.text


@pytest.mark.parametrize(
    ("token", "status", "said"),
    [
        ((401, '{"error": "invalid_client"}'), 502, "GRADER_WEB_OIDC_CLIENT_SECRET_FILE"),
        ((400, '{"error": "invalid_grant"}'), 400, "This sign-in is over"),
        ((400, '{"error": "invalid_request"}'), 502, "“invalid_request”"),
        ((400, '{"error": {"a": 1}}'), 502, "The provider refused the sign-in"),
        ((500, "down"), 503, "does not answer"),
        ((200, "<html>"), 503, "does not answer"),
        ((200, "[]"), 503, "does not answer"),
        ((200, '{"access_token": "x", "token_type": "Bearer"}'), 503, "does not answer"),
        ((200, '{"access_token": "x", "token_type": "Bearer", "id_token": "a.b"}'), 502, "cannot be trusted"),
        ((200, '{"access_token": "x", "token_type": "Bearer", "id_token": 7}'), 502, "cannot be trusted"),
        ((200, '{"access_token": "x", "token_type": "Bearer", "expires_in": 1e999}'), 503, "does not answer"),
        pytest.param((200, "[" * 100_000), 503, "does not answer", id="deep"),
    ],
)
def test_bad_answers_to_the_code_get_a_page(port, double, token, status, said):
    """What happened, and what to do; the browser forgets the sign-in."""
    client = Client(port)
    sent = sent_to(client.get("/login/oidc"))
    double.answers["/token"] = token
    answer = back(client, code="a", state=sent["state"])
    assert answer.status == status
    assert said in answer.text
    assert re.match('grader_oidc="".*Max-Age=0', answer.headers["set-cookie"])


@pytest.mark.parametrize(
    "keys",
    [(500, "down"), (200, "<html>"), {}, [], {"keys": []}, {"keys": [{}]}, {"keys": ["x"]}, {"keys": {}}],
    ids=str,
)
def test_keys_that_are_none_open_nothing(quick_store, double, keys):
    """Whatever the provider has in their place."""
    double.answers["/jwks"] = keys
    with served(quick_store, READ_ONLY, provider=a_provider(double.issuer)) as port:
        answer = signed_in(port, double)[1]
        assert answer.status in {502, 503}
        assert "The provider" in answer.text


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ((500, "down"), "500"),
        ((200, "<html>"), "JSONDecodeError"),
        ((200, "[]"), "calls itself None"),
        pytest.param((200, "[" * 100_000), "RecursionError", id="deep"),
        pytest.param((200, " " * LONGEST + "{}"), "more than 1048576 bytes", id="long"),
        ({"issuer": "https://evil.example"}, "GRADER_WEB_OIDC_ISSUER"),
        ({"jwks_uri": None}, "jwks_uri"),
        ({"token_endpoint": "ftp://x"}, "token_endpoint"),
        ({"id_token_signing_alg_values_supported": ["none", "HS256"]}, "signs ID tokens with"),
    ],
    ids=str,
)
def test_a_provider_that_does_not_describe_itself_gets_nobody(double, metadata, reason):
    """The page says that it does not answer, the log why; it is asked again the next time."""
    good = double.metadata()
    double.answers["/.well-known/openid-configuration"] = good | metadata if isinstance(metadata, dict) else metadata
    provider = a_provider(double.issuer)
    with pytest.raises(SignInFailed, match=reason) as caught:
        provider.begin("http://127.0.0.1/login/oidc/callback", "/")
    assert (caught.value.status, caught.value.title) == (503, "The provider does not answer")
    double.answers["/.well-known/openid-configuration"] = good
    assert provider.begin("http://127.0.0.1/login/oidc/callback", "/")[0].startswith(f"{double.issuer}/auth?")


def test_a_new_key_of_the_provider_is_fetched(port, double):
    """Providers change their keys."""
    assert signed_in(port, double)[1].status == 200
    fresh = OTHER_KEY.as_dict(private=False) | {"kid": "new"}
    double.answers["/jwks"] = {"keys": [fresh]}
    header = {"alg": "RS256", "kid": "new"}
    assert signed_in(port, double, key=OTHER_KEY, header=header)[1].status == 200


def known(provider, double, key):
    """Who comes back with an ID token that is signed with this key."""
    there, sealed = provider.begin("http://127.0.0.1/login/oidc/callback", "/")
    sent = {name: value for name, (value,) in parse_qs(urlsplit(there).query).items()}
    double.hands_out(double.id_token(sent["nonce"], key=key))
    return provider.person(provider.resume(sealed, {"state": sent["state"]}), {"code": "a"}).name


def test_a_new_key_under_an_old_name_is_fetched_after_a_failure(double):
    """As a provider has it that was installed anew; it is asked for everything again, but not within ten seconds."""
    clock = HandClock()
    provider = a_provider(double.issuer, clock=clock)
    assert known(provider, double, KEY) == "alice"
    double.answers["/jwks"] = KeySet([OTHER_KEY]).as_dict(private=False)
    double.asked.clear()
    for seconds in (0, 9.9):
        clock.now += seconds
        with pytest.raises(SignInFailed, match="BadSignature"):
            known(provider, double, OTHER_KEY)
    assert {path for path, _ in double.asked} == {"/token"}
    clock.now += 0.1
    assert known(provider, double, OTHER_KEY) == "alice"
    assert known(provider, double, OTHER_KEY) == "alice"
    assert [path for path, _ in double.asked].count("/.well-known/openid-configuration") == 1


def test_a_provider_that_answers_by_drops_is_left(double, monkeypatch):
    """A byte now and then holds no thread of the page."""
    monkeypatch.setattr(bounded_session, "_BODY_S", 0.2)

    def drops():
        for _ in range(1000):
            time.sleep(0.02)
            yield " "

    double.answers["/.well-known/openid-configuration"] = (200, drops())
    with pytest.raises(SignInFailed, match="needs more than"):
        a_provider(double.issuer).begin("http://127.0.0.1/login/oidc/callback", "/")


def test_what_fails_is_logged_without_secrets(port, double, capfd):
    """The reason and the address; no code, no token, no secret."""
    _, answer = signed_in(port, double, aud="another-client")
    said = capfd.readouterr()
    logged = said.out + said.err
    assert answer.status == 502
    assert "sign_in_refused" in logged
    assert "'aud'" in logged
    (form,) = (form for path, form in double.asked if path == "/token")
    for secret in (CLIENT_SECRET, form["code_verifier"][0], double.answers["/token"]["id_token"]):
        assert secret not in logged


def test_nobody_waits_for_refusals_of_the_provider(quick_store, double):
    """No guessing helps there, and one address may be a whole class's; nor for wrong tokens, nor those for refusals."""
    with served(quick_store, BOTH, provider=a_provider(double.issuer)) as port:
        for _ in range(6):
            assert signed_in(port, double, groups=[])[1].status == 403
        assert Client(port).sign_in(OPERATOR_TOKEN, "ann").status == 303
        for _ in range(5):
            assert Client(port).sign_in("wrong", "ann").status == 403
        assert Client(port).sign_in("wrong", "ann").status == 429
        assert signed_in(port, double)[1].status == 200


def test_only_so_many_ask_a_provider_that_hangs(double):
    """The threads of other pages stay free."""
    provider = a_provider(double.issuer)
    with contextmanager(_all_asking)(provider), pytest.raises(SignInFailed, match="wait for an answer"):
        provider.begin("http://127.0.0.1/login/oidc/callback", "/")
    assert provider.begin("http://127.0.0.1/login/oidc/callback", "/")


def _all_asking(provider):
    taken = [provider._free.acquire(blocking=False) for _ in range(8)]
    assert all(taken)
    yield
    provider._free.release(len(taken))


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
