"""Behind proxies addresses are those of clients, and only proxies that are trusted say which."""

import pytest

from grader_service.errors import ConfigurationError
from grader_service.web.hosts import trusted_proxies
from grader_service.web.queries import EventFilter, events
from tests.web.client import BOTH, OPERATOR_TOKEN, VIEWER_TOKEN, Client, served
from tests.web.openid_provider import a_provider

CLIENT = "203.0.113.7"
INNER = "10.1.0.5"
"""A proxy in front of the one on this machine."""
HERE = ("127.0.0.1", "10.1.0.0/16", "2001:db8:1::/48")


def seen_as(port, store, forwarded):
    """The address that the audit log has of an operator whose request says this of where it came from."""
    client = Client(port)
    csrf = client.get("/login").csrf
    fields = {"csrf": csrf, "token": OPERATOR_TOKEN, "name": "Zoë"}
    answer = client.post("/login", fields, **{"X-Forwarded-For": forwarded})
    assert answer.status == 303, answer.text
    return events(store, EventFilter(kind="web_signed_in"))[0].detail["address"]


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        (CLIENT, CLIENT),
        (f"{CLIENT}:4711", CLIENT),
        (f"1.2.3.4, {CLIENT}", CLIENT),
        (f"1.2.3.4, {CLIENT}, {INNER}", CLIENT),
        (f"{INNER}, {CLIENT}", CLIENT),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]:4711, 2001:db8:1::1", "2001:db8::7"),
        ("", "127.0.0.1"),
    ],
)
def test_the_client_is_the_last_address_that_is_no_proxy_of_ours(quick_store, forwarded, client):
    """What stands before it, clients may have made up."""
    with served(quick_store, BOTH, HERE) as port:
        assert seen_as(port, quick_store, forwarded) == client


def test_nobody_else_is_believed(quick_store):
    """Neither by default, nor where other proxies are trusted: not the address, and not that there is TLS."""
    for proxies in ((), ("10.1.0.0/16",)):
        with served(quick_store, BOTH, proxies) as port:
            assert seen_as(port, quick_store, CLIENT) == "127.0.0.1"
            client = Client(port, headers={"X-Forwarded-For": CLIENT, "X-Forwarded-Proto": "https"})
            assert "secure" not in client.sign_in(VIEWER_TOKEN).headers["set-cookie"].lower()


def test_each_client_waits_for_itself(quick_store):
    """Who guesses through the proxy makes nobody else wait, and does not escape by another address in front."""
    with served(quick_store, BOTH, HERE) as port:
        for number in range(5):
            guesser = Client(port, headers={"X-Forwarded-For": f"198.51.100.{number}, {CLIENT}"})
            assert guesser.sign_in("wrong-token-wrong-token").status == 403
        assert Client(port, headers={"X-Forwarded-For": f"198.51.100.9, {CLIENT}"}).sign_in(VIEWER_TOKEN).status == 429
        assert Client(port, headers={"X-Forwarded-For": "203.0.113.8"}).sign_in(VIEWER_TOKEN).status == 303


def test_behind_tls_cookies_are_for_tls_only(quick_store):
    """The session's, that of the form, and that of the way to the provider."""
    with served(quick_store, BOTH, HERE, provider=a_provider("https://id.example")) as port:
        client = Client(port, headers={"X-Forwarded-For": CLIENT, "X-Forwarded-Proto": "https"})
        assert "secure" in client.get("/login").headers["set-cookie"].lower()
        assert "secure" in client.sign_in(VIEWER_TOKEN).headers["set-cookie"].lower()
        assert "secure" in client.act("/logout").headers["set-cookie"].lower()


def test_proxies_are_addresses_and_networks():
    """Those of IPv4 also as a server on `::` sees them."""
    assert trusted_proxies("") == []
    assert trusted_proxies("10.1.0.0/16 ::1") == ["10.1.0.0/16", "::ffff:10.1.0.0/112", "::1/128"]
    for wrong in ("proxy.example", "*", "10.1.0.1/16", "127.0.0.1,10.1.0.0/16"):
        with pytest.raises(ConfigurationError, match="separated by spaces"):
            trusted_proxies(wrong)
