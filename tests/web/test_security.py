"""Who gets in, what is refused, and what every answer carries; over plain HTTP."""

import json
import re
import socket

import pytest

from grader_service.store import regrades
from grader_service.web.app import ROUTES
from grader_service.web.pages.actions import ACTIONS
from grader_service.web.queries import EventFilter, events
from tests.web.client import BOTH, FORM, OPERATOR_TOKEN, READ_ONLY, VIEWER_TOKEN, Client, served
from tests.web.stock import IMAGE, REVIEWED

HOSTILE_NEXT = ("//evil.example/", "/\\evil.example", "https://evil.example/", "javascript:alert(1)", "/a\r\nX: y", "")


def posts(place):
    """Address of everything that changes something."""
    review = f"/reviews/{place.seen['ids'][0]}/{REVIEWED}"
    return [*(f"/batches/{place.seen['planned']}/do/{action}" for action in ACTIONS), "/batches/new", review]


def state_of(place):
    return [(batch.batch_id, batch.state) for batch in regrades.batches(place.store)]


def test_every_answer_forbids_scripts_frames_and_caches(place, operator):
    """Also refusals, missing pages and JSON."""
    paths = [*place.pages().values(), "/nowhere", "/api/queue", "/submissions/none", "/live/queue", "/logout"]
    for path in paths:
        headers = operator.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy, path
        assert "script-src 'self';" in policy, path
        assert "unsafe" not in policy, path
        assert headers["x-frame-options"] == "DENY", path
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["cache-control"] == "no-store", path
        assert headers["referrer-policy"] == "same-origin", path
        assert "server" not in headers, path


def test_pages_carry_no_inline_script_or_style(place, operator):
    """The policy would refuse them; templates have none."""
    for path in place.pages().values():
        text = operator.get(path).text
        assert re.findall(r"<script(?! src=\"/static/)", text) == [], path
        assert not re.search(r"<[^>]+\s(on[a-z]+|style)=", text), path


def test_framed_documents_have_policies_of_their_own(place, visitor):
    """A verdict runs no script at all; a report runs its own, outside of this origin."""
    verdict = visitor.get(f"/verdicts/{place.verdict(place.seen['ids'][0])}/report")
    assert verdict.status == 200
    policy = verdict.headers["content-security-policy"]
    assert "sandbox allow-same-origin;" in policy
    assert "allow-scripts" not in policy
    assert "frame-ancestors 'self'" in policy
    report = visitor.get(f"/batches/{place.seen['finished']}/report")
    assert report.status == 200
    policy = report.headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy


def test_static_files_may_be_kept_for_ever(visitor):
    """Their address changes with them; other addresses are not there."""
    links = re.findall(r'"(/static/[^"]+)"', visitor.get("/").text)
    assert sorted(link.rpartition("/")[2] for link in links) == ["live.js", "report.css", "web.css"]
    for link in links:
        answer = visitor.get(link)
        assert answer.status == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"].startswith(("text/css", "text/javascript"))
        assert visitor.get(re.sub(r"/static/\w+/", "/static/0000000000000000/", link)).status == 404
    assert visitor.get("/static/0/..%2f..%2fapp.py").status == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8350", "127.0.0.1.evil.example", "", None, "[::1", "localhost:1:2"]
)
def test_forged_hosts_are_refused(visitor, host):
    """A name that resolves here does not open the page, for reading as little as for forms."""
    for answer in (visitor.get("/", Host=host), visitor.post("/login", {}, Host=host)):
        assert answer.status in {400, 421}
        assert "Learners waiting" not in answer.text


def test_known_hosts_are_answered(visitor):
    """With any port: a tunnel may give another."""
    for host in ("localhost:9999", "127.0.0.1", "[::1]:8350"):
        assert visitor.get("/", Host=host).status == 200


def test_two_hosts_are_refused(place):
    """Nobody knows which one the others believed."""
    with socket.create_connection(("127.0.0.1", place.port), timeout=10) as wire:
        wire.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        assert int(wire.recv(4096).split()[1]) in {400, 421}


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
def test_open_reading_does_not_go_through_proxies(place, visitor, header):
    """Else a proxy on this machine would show everything to everybody; with a viewer token it may."""
    answer = visitor.get("/", **{header: "203.0.113.7"})
    assert answer.status == 403
    assert "GRADER_WEB_VIEWER_TOKEN_FILE" in answer.text
    assert Client(place.closed_port).get("/login", **{header: "203.0.113.7"}).status == 200


def test_without_a_viewer_token_everybody_here_reads(place, visitor):
    """And nobody sees a button."""
    for path in ("/", "/submissions", "/reviews", f"/batches/{place.seen['planned']}", "/audit", "/api/queue"):
        answer = visitor.get(path)
        assert answer.status == 200
        assert "<button" not in re.sub(r'<form[^>]*role="search".*?</form>', "", answer.text, flags=re.DOTALL)
        assert "/do/" not in answer.text


def test_with_a_viewer_token_nothing_is_read_without_it(place):
    """Pages send to the form, JSON says that a token is needed."""
    nobody = Client(place.closed_port)
    for path in [*place.pages().values(), "/live/queue", "/nowhere"]:
        if path == "/login":
            continue
        answer = nobody.get(path)
        assert answer.status == 303, path
        assert answer.headers["location"].startswith("/login?next=%2F"), path
        assert place.seen["ids"][0] not in answer.text
    for route in ROUTES:
        if route.path.startswith("/api/"):
            answer = nobody.get(route.path.replace("{batch_id}", place.seen["planned"]))
            assert answer.status == 401
            assert answer.headers["www-authenticate"] == "Bearer"
    assert nobody.get("/alive").text == "alive\n"
    assert nobody.get("/ready").text == "ready\n"


def test_viewers_read_and_do_not_act(place):
    """No button, no confirmation, no form; a request made by hand is refused and changes nothing."""
    viewer = Client(place.closed_port)
    assert viewer.sign_in(VIEWER_TOKEN).status == 303
    before = state_of(place)
    page = viewer.get(f"/batches/{place.seen['planned']}").text
    assert "/do/" not in page
    assert "viewer" in page
    for path in posts(place):
        assert viewer.get(path).status == 403 or not path.endswith("new")
        answer = viewer.act(path, confirmed="yes", typed=place.seen["planned"], notify="none", reason="x")
        assert answer.status == 403
        assert "operator" in answer.text
    assert state_of(place) == before


def test_without_an_operator_token_no_action_exists(place):
    """Whatever is sent; the page says which setting is missing."""
    with served(place.store, READ_ONLY) as port:
        client = Client(port)
        csrf = client.get("/login").csrf or "x"
        before = state_of(place)
        for path in posts(place):
            answer = client.post(path, {"csrf": csrf, "confirmed": "yes", "reason": "x", "do": "create"})
            assert answer.status == 403
            assert "GRADER_WEB_OPERATOR_TOKEN_FILE" in answer.text
        assert client.post("/login", {"csrf": csrf, "token": "", "name": "x"}).status == 403
        assert state_of(place) == before
        assert "Sign in" not in client.get("/").text


@pytest.mark.parametrize(
    ("origin", "site"),
    [
        ("https://evil.example", "cross-site"),
        ("https://evil.example", None),
        (None, "same-site"),
        (None, "none"),
        ("null", None),
        (None, None),
    ],
    ids=["another site", "another origin", "another subdomain", "typed address", "opaque origin", "nothing said"],
)
def test_forms_of_other_origins_are_refused(place, operator, origin, site):
    """Even with the right token in them."""
    before = state_of(place)
    path = f"/batches/{place.seen['planned']}/do/start"
    fields = {"csrf": operator.get("/").csrf}
    answer = operator.post(path, fields, **{"Origin": origin, "Sec-Fetch-Site": site})
    assert answer.status == 403
    assert "not sent by a page of this server" in answer.text
    assert state_of(place) == before


def test_forms_without_the_sessions_token_are_refused(place, operator):
    """None, a wrong one, that of another session, and the right one without its cookie."""
    before = state_of(place)
    path = f"/batches/{place.seen['planned']}/do/start"
    other = Client(place.port)
    other.sign_in(OPERATOR_TOKEN, "Ann")
    for csrf in ("", "0" * 64, other.get("/").csrf, "é"):
        answer = operator.post(path, {"csrf": csrf})
        assert answer.status == 403
        assert "another session" in answer.text
    assert Client(place.port).post(path, {"csrf": operator.get("/").csrf}).status == 403
    assert state_of(place) == before


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"csrf=" + b"x" * 70_000, {"Content-Type": FORM}, 413),
        (b"a=1&" * 600, {"Content-Type": FORM}, 413),
        (b"csrf=x", {"Content-Type": FORM, "Content-Length": "9999999999"}, 413),
        (b"csrf=x", {"Content-Type": FORM, "Content-Length": "70000"}, 413),
        (b"{}", {"Content-Type": "application/json"}, 415),
        (b"--x\r\n", {"Content-Type": "multipart/form-data; boundary=x"}, 415),
        (b"csrf=x", {}, 415),
    ],
    ids=["large", "many fields", "long announced", "longer announced", "json", "multipart", "untyped"],
)
def test_other_bodies_than_small_forms_are_refused(operator, body, headers, status):
    """Before anybody reads what they say."""
    same = {"Origin": f"http://127.0.0.1:{operator.port}", "Sec-Fetch-Site": "same-origin"}
    assert operator.ask("POST", "/batches/new", body, **same, **headers).status == status


def test_chunked_bodies_are_bounded(place):
    """Without an announced length too."""
    with socket.create_connection(("127.0.0.1", place.port), timeout=20) as wire:
        head = (
            f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\nOrigin: http://127.0.0.1:{place.port}\r\n"
            f"Content-Type: {FORM}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        )
        wire.sendall(head.encode())
        try:
            for _ in range(80):
                wire.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")
        except OSError:
            pass
        assert wire.recv(4096).split()[1] == b"413"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(operator, method):
    """Pages are read, forms are posted."""
    assert operator.ask(method, "/").status == 405
    assert operator.ask("POST", "/submissions", b"", Origin=f"http://127.0.0.1:{operator.port}").status == 415
    assert operator.act("/submissions").status == 405


def test_the_cookie_says_nothing_and_goes_nowhere_else(place):
    """HttpOnly, this site only, new at signing in, without force after signing out; for TLS: test_proxies.py."""
    client = Client(place.port)
    client.get("/login")
    before = client.cookie
    answer = client.sign_in(OPERATOR_TOKEN)
    for part in ("HttpOnly", "SameSite=strict", "Path=/"):
        assert part.lower() in answer.headers["set-cookie"].lower()
    assert "secure" not in answer.headers["set-cookie"].lower()
    assert client.cookie != before
    assert OPERATOR_TOKEN not in client.cookie
    cookie = client.cookie
    assert "operator" in client.get("/").text
    assert client.act("/logout").status == 303
    assert 'action="/logout"' not in Client(place.port, cookie=cookie).get("/").text


def test_a_planted_cookie_is_worth_nothing(place):
    """Whoever set a visitor's cookie before does not share the session afterwards."""
    victim = Client(place.port, cookie="grader_session=planted-by-somebody-else")
    assert victim.sign_in(OPERATOR_TOKEN).status == 303
    assert "planted" not in victim.cookie
    assert 'action="/logout"' not in Client(place.port, cookie="grader_session=planted-by-somebody-else").get("/").text


@pytest.mark.parametrize("target", HOSTILE_NEXT)
def test_signing_in_leads_to_no_other_server(place, target):
    """Whatever the link said."""
    client = Client(place.port)
    csrf = client.get("/login").csrf
    answer = client.post("/login", {"csrf": csrf, "token": OPERATOR_TOKEN, "name": "Zoë", "next": target})
    assert answer.status == 303
    assert answer.headers["location"] == "/"


def test_signing_in_leads_back(place):
    """To the page that asked for it."""
    client = Client(place.closed_port)
    asked = client.get("/submissions?q=a%20b").headers["location"]
    page = client.get(asked).text
    target = re.search(r'name="next" value="([^"]+)"', page)[1]
    answer = client.post("/login", {"csrf": client.get(asked).csrf, "token": VIEWER_TOKEN, "next": target})
    assert answer.headers["location"] == "/submissions?q=a%20b"


@pytest.mark.parametrize("name", ["", "x" * 61, "a\tb", "  "])
def test_operators_have_a_name(place, name):
    """It stands in the audit log."""
    answer = Client(place.port).sign_in(OPERATOR_TOKEN, name)
    assert answer.status == 400
    assert "audit log" in answer.text


def test_guessing_is_slow_and_logged_nowhere_in_clear(quick_store):
    """After five wrong tokens an address waits, also with the right one, and bearers wait with it."""
    with served(quick_store, BOTH) as port:
        client = Client(port)
        for _ in range(5):
            assert client.sign_in("wrong-token-wrong-token").status == 403
        answer = client.sign_in(OPERATOR_TOKEN)
        assert answer.status == 429
        assert 0 < int(answer.headers["retry-after"]) <= 60
        assert Client(port).get("/api/queue", Authorization=f"Bearer {OPERATOR_TOKEN}").status == 401


def test_bearers_read_json_and_nothing_else(place):
    """A token in a header opens the figures for scripts, no page and no action."""
    client = Client(place.closed_port, headers={"Authorization": f"Bearer {VIEWER_TOKEN}"})
    queue = json.loads(client.get("/api/queue").text)
    assert queue["undelivered"] >= 0
    assert {device["state"] for device in queue["devices"]} == {"ready", "quarantined"}
    (worker,) = queue["workers"]
    assert (worker["worker_id"], worker["reason"]) == ("run/cpu:host:0", f"run space: {IMAGE}")
    asked = json.loads(client.get(f"/api/reconcile?id={place.seen['ids'][0]}&id=never").text)
    assert [one["state"] for one in asked] == ["answered", "unknown"]
    assert client.get("/api/reconcile").status == 400
    batches = json.loads(client.get("/api/batches").text)
    assert {batch["batch_id"] for batch in batches} >= {place.seen["planned"], place.seen["finished"]}
    one = json.loads(client.get(f"/api/batches/{place.seen['finished']}").text)
    assert one["progress"]["counts"] == {"done": 60}
    diff = json.loads(client.get(f"/api/batches/{place.seen['finished']}/diff").text)
    assert sum(diff["kinds"].values()) == 60
    assert json.loads(client.get("/api/batches/none").text)["error"]
    assert client.get("/").status == 303
    acting = Client(place.closed_port, headers={"Authorization": f"Bearer {OPERATOR_TOKEN}"})
    assert acting.post(f"/batches/{place.seen['planned']}/do/start", {"csrf": ""}).status == 403


def test_signing_in_is_in_the_audit_log(quick_store):
    """With the operator's name; viewers leave no trace, wrong tokens neither."""
    with served(quick_store, BOTH) as port:
        Client(port).sign_in(VIEWER_TOKEN, "Val")
        Client(port).sign_in("wrong-token-wrong-token", "Eve")
        Client(port).sign_in(OPERATOR_TOKEN, "Zoë <b>")
    (event,) = events(quick_store, EventFilter())
    assert (event.kind, event.actor) == ("web_signed_in", "web:Zoë <b>")
