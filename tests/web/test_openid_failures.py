"""What an OpenID provider answers wrongly, slowly or not at all, and which page a person gets then."""

import re
import time
from contextlib import contextmanager

import pytest
from joserfc.jwk import KeySet

from grader_service.web import bounded_session
from grader_service.web.bounded_session import LONGEST
from grader_service.web.claims import SignInFailed
from tests.hand_clock import HandClock
from tests.web.client import BOTH, OPERATOR_TOKEN, READ_ONLY, Client, served
from tests.web.openid_double import KEY, OTHER_KEY, back, known, sent_to, signed_in
from tests.web.openid_provider import CLIENT_SECRET, a_provider


@pytest.fixture
def port(page):
    """Of the page where nobody gets in but through the provider."""
    return page


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
