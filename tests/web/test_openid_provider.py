"""People sign in at a real OpenID provider; in Chromium, and as a browser would over plain HTTP."""

from urllib.parse import urlsplit

import pytest

from grader_service.web.access import Sessions
from grader_service.web.queries import EventFilter, events
from tests.hand_clock import HandClock
from tests.services.kept_port import kept_port
from tests.store.factories import a_submission, accept
from tests.web.client import BOTH, OPERATOR_TOKEN, READ_ONLY, Client, served
from tests.web.openid_provider import a_provider, signed_in_there

FORM = "/submissions/s:1/cancel"


@pytest.fixture
def clock():
    """Of the page's sessions."""
    return HandClock()


@pytest.fixture
def port(openid, quick_store, clock):
    """Of a page that people come to from that provider, with one submission that waits."""
    accept(quick_store, a_submission())
    with served(quick_store, READ_ONLY, provider=a_provider(openid), sessions=Sessions(clock)) as at:
        yield at


def came_back(port, login):
    """Somebody who signed in there, and what the page said then."""
    client = Client(port)
    there = signed_in_there(client.get("/login/oidc").headers["location"], login)
    return client, client.get(there.removeprefix(f"http://127.0.0.1:{port}"))


def test_roles_come_from_the_provider(port, quick_store):
    """An operator, a viewer, and somebody who is neither."""
    alice, answer = came_back(port, "alice")
    assert answer.status == 200, answer.text
    assert alice.act(FORM, confirmed="yes", reason="twice").status == 303
    bob, answer = came_back(port, "bob")
    assert answer.status == 200
    assert bob.get("/submissions/s:1").status == 200
    assert bob.act(FORM, confirmed="yes").status == 403
    carol, answer = came_back(port, "carol")
    assert answer.status == 403
    assert "You are signed in at the provider as carol" in answer.text
    assert carol.get("/submissions/s:1").status == 303
    by = [(event.kind, event.actor) for event in events(quick_store, EventFilter()) if event.actor.startswith("oidc:")]
    assert by == [("cancelled", "oidc:alice"), ("web_signed_in", "oidc:alice")]


def test_the_provider_refuses_a_wrong_secret(openid, quick_store):
    """The page says which settings to compare."""
    with served(quick_store, READ_ONLY, provider=a_provider(openid, client_secret="another")) as port:  # noqa: S106
        _, answer = came_back(port, "alice")
        assert answer.status == 502
        assert "GRADER_WEB_OIDC_CLIENT_SECRET_FILE" in answer.text


def test_a_code_is_good_once(port):
    """Whoever steals it comes too late, and the provider takes it for one browser's verifier only."""
    client, other = Client(port), Client(port)
    there = signed_in_there(client.get("/login/oidc").headers["location"], "alice")
    cookie, path = client.cookie, there.removeprefix(f"http://127.0.0.1:{port}")
    assert client.get(path).status == 200
    answer = Client(port, cookie=cookie).get(path)
    assert answer.status == 400
    assert "The provider no longer knows it" in answer.text
    stolen = signed_in_there(client.get("/login/oidc").headers["location"], "alice")
    own = other.get("/login/oidc").headers["location"]
    code = urlsplit(stolen).query.partition("code=")[2].partition("&")[0]
    state = own.partition("state=")[2].partition("&")[0]
    assert other.get(f"/login/oidc/callback?code={code}&state={state}").status == 400


def entered(window, login):
    """Goes to the provider and enters a name there."""
    window.page.route("**/*.googleapis.com/**", lambda route: route.abort())
    window.press("Sign in at", role="link")
    window.page.locator("input[name=login]").fill(login)
    window.page.locator("input[name=password]").fill("any")
    with window.page.expect_navigation():
        window.page.locator("button[type=submit]").click()
    return window


def signed_in(window, path, login):
    """Signs in from the page that was asked for, and is led back to it."""
    window.go(path)
    entered(window, login)
    window.page.locator("button[type=submit]", has_text="Continue").click()
    return window


@pytest.mark.slow
def test_an_operator_signs_in_acts_and_signs_out(port, visit):
    """From the page that was asked for, back to it; the audit log shows the provider's name."""
    window = signed_in(visit(port), "/submissions/s:1", "alice")
    window.page.wait_for_url("**/submissions/s:1")
    assert "alice (operator)" in window.page.locator(".who").inner_text()
    window.page.locator(f'a[href="{FORM}"]').click()
    window.press("Cancel the submission")
    window.go("/audit")
    row = window.page.locator("tbody tr", has_text="cancelled").first
    assert "oidc:alice" in row.inner_text()
    window.press("Sign out")
    assert window.page.url.startswith(f"{window.base}/login")
    assert window.go("/audit") == 200
    assert window.page.url.startswith(f"{window.base}/login")


@pytest.mark.slow
def test_a_viewer_sees_no_action(port, visit):
    """And is not asked to sign in once more."""
    window = signed_in(visit(port), "/submissions/s:1", "bob")
    window.page.wait_for_url("**/submissions/s:1")
    assert window.page.locator(".who").inner_text().split("\n")[0] == "bob (viewer)"
    assert window.page.locator(f'a[href="{FORM}"]').count() == 0
    assert window.go(FORM) == 403


@pytest.mark.slow
def test_who_has_no_role_or_says_no_is_told_so(port, visit):
    """In words, with a way back."""
    window = signed_in(visit(port), "/", "carol")
    window.page.get_by_role("heading", name="You have no access").wait_for()
    window.press("Back to signing in", role="link")
    second = visit(port)
    second.go("/")
    entered(second, "alice")
    second.page.get_by_role("link", name="Cancel").click()
    second.page.get_by_role("heading", name="You were not signed in").wait_for()


@pytest.mark.slow
def test_an_old_tab_and_an_old_session_begin_again(port, visit, clock):
    """The tab whose sign-in was overtaken says so; a session ends after an hour without a request."""
    older = visit(port)
    older.go("/login")
    entered(older, "alice")
    newer = older.page.context.new_page()
    newer.goto(f"{older.base}/login/oidc")
    older.page.locator("button[type=submit]", has_text="Continue").click()
    older.page.get_by_role("heading", name="This sign-in is over").wait_for()
    older.press("Back to signing in", role="link")
    older.press("Sign in at", role="link")  # the provider knows this browser now, and asks for no name
    older.page.locator("button[type=submit]", has_text="Continue").click()
    older.page.wait_for_url(f"{older.base}/")
    assert "alice (operator)" in older.page.locator(".who").inner_text()
    clock.now += 3601
    older.go("/audit")
    assert older.page.url.startswith(f"{older.base}/login?next=")


@pytest.mark.slow
def test_a_provider_that_is_down_leaves_the_tokens(quick_store, visit):
    """Where they are set."""
    with kept_port() as closed, served(quick_store, BOTH, provider=a_provider(f"http://localhost:{closed}")) as port:
        window = visit(port)
        window.go("/login")
        window.press("Sign in at", role="link")
        assert window.page.get_by_role("heading", name="The provider does not answer").is_visible()
        window.sign_in(OPERATOR_TOKEN)
        assert "Zoë (operator)" in window.page.locator(".who").inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 1280])
def test_its_pages_fit(openid, quick_store, visit, width):
    """On telephones, too."""
    with served(quick_store, BOTH, provider=a_provider(openid)) as port:
        window = visit(port, width)
        for path in ("/login", "/login/oidc/callback?state=x"):
            window.go(path)
            assert window.too_wide == []
