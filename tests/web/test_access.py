"""Tokens, sessions and patience."""

import pytest

from grader_service.errors import ConfigurationError
from grader_service.web.access import Patience, Role, Sessions, Source, Tokens, read_tokens
from grader_service.web.hosts import address, allowed_names, is_loopback, name_of
from grader_service.web.serving import listen, make_site
from tests.hand_clock import HandClock

TOKEN = "a-token-of-enough-length"  # noqa: S105
EVERYWHERE = "0.0.0.0"  # noqa: S104
OTHER = "another-token-of-enough-length"


def written(path, text):
    path.write_text(text)
    return path


def test_each_token_opens_its_role():
    """And nothing opens what no token is set for."""
    tokens = Tokens(viewer=TOKEN, operator=OTHER)
    assert (tokens.role_of(TOKEN), tokens.role_of(OTHER)) == (Role.VIEWER, Role.OPERATOR)
    assert {tokens.role_of(text) for text in ("", "a-token", TOKEN + " ")} == {Role.NOBODY}
    assert Tokens().role_of("") is Role.NOBODY
    assert Tokens(viewer=TOKEN).role_of("None") is Role.NOBODY
    assert Tokens(operator=OTHER).role_of("\udcff\U0001f600") is Role.NOBODY


def test_tokens_are_the_first_lines_of_files(tmp_path):
    """What follows is for whoever keeps the file."""
    viewer = written(tmp_path / "viewer", f"{TOKEN}\nmade in autumn\n")
    assert read_tokens(viewer, None) == Tokens(viewer=TOKEN)
    assert read_tokens(None, None) == Tokens()


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "it has 0"), ("\n" + TOKEN, "it has 0"), ("short", "it has 5")],
    ids=["empty", "empty first line", "short"],
)
def test_weak_tokens_are_refused(tmp_path, text, said):
    """The message names the setting, the file, and how to make one."""
    path = written(tmp_path / "operator", text)
    with pytest.raises(ConfigurationError) as caught:
        read_tokens(None, path)
    for part in ("GRADER_WEB_OPERATOR_TOKEN_FILE", str(path), "at least 16", said, "openssl"):
        assert part in str(caught.value)


def test_missing_and_equal_tokens_are_refused(tmp_path):
    """A viewer must not hold an operator's token."""
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00" * 20)
    for unreadable in (tmp_path / "none", binary):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            read_tokens(unreadable, None)
    one = written(tmp_path / "one", TOKEN)
    with pytest.raises(ConfigurationError, match="the same token"):
        read_tokens(one, one)


def test_sessions_end_when_idle_old_or_closed():
    """An hour without a request, ten hours in all, or signed out."""
    clock = HandClock()
    sessions = Sessions(clock)
    idle, old, closed = (sessions.open(Role.OPERATOR, name) for name in ("idle", "old", "closed"))
    assert len({idle, old, closed}) == 3
    assert sessions.find(idle) == (Role.OPERATOR, "idle", Source.TYPED)
    sessions.close(closed)
    assert sessions.find(closed) is None
    clock.now += 3500
    assert sessions.find(old) is not None
    clock.now += 200
    assert sessions.find(idle) is None
    assert sessions.find(old) is not None
    for _ in range(10):
        clock.now += 3300
        seen = sessions.find(old)
    assert seen is None
    assert sessions.find("made up") is None


def test_sessions_are_bounded():
    """The oldest make room."""
    sessions = Sessions()
    first = sessions.open(Role.VIEWER, "first")
    for _ in range(1000):
        last = sessions.open(Role.VIEWER, "other")
    assert sessions.find(first) is None
    assert sessions.find(last) is not None


def test_form_tokens_belong_to_one_cookie_of_one_process():
    """No other cookie and no other process gives the same."""
    sessions = Sessions()
    assert sessions.csrf("a") == sessions.csrf("a")
    assert len({sessions.csrf("a"), sessions.csrf("b"), Sessions().csrf("a")}) == 3


def test_patience_is_per_address_and_comes_back():
    """Five wrong tokens in a minute, then a wait; others are not kept waiting."""
    clock = HandClock()
    patience = Patience(clock=clock)
    for _ in range(5):
        assert patience.wait_s("1.2.3.4") == 0
        patience.failed("1.2.3.4")
        clock.now += 2
    assert patience.wait_s("1.2.3.4") == pytest.approx(50)
    assert patience.wait_s("1.2.3.5") == 0
    clock.now += 50
    assert patience.wait_s("1.2.3.4") == 0


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost:8350", "localhost"),
        ("LOCALHOST", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]:8350", "::1"),
        ("[::1]", "::1"),
        ("::1", "::1"),
        ("evil.example:80", "evil.example"),
        ("", ""),
    ],
)
def test_names_in_host_headers(header, name):
    """Without the port, in lower case."""
    assert name_of(header) == name


def test_who_may_be_asked_for():
    """A server on this machine answers to its own names, one on every interface to those given."""
    assert allowed_names("127.0.0.1", ()) == {"127.0.0.1", "localhost", "::1"}
    assert allowed_names("127.0.0.1", ["Grader.Example"]) == {"127.0.0.1", "localhost", "::1", "grader.example"}
    assert allowed_names("10.0.0.5", ()) == {"10.0.0.5"}
    assert allowed_names(EVERYWHERE, ()) is None
    assert "grader.example" in allowed_names("::", ["grader.example"])
    assert all(is_loopback(host) for host in ("127.0.0.9", "::1", "localhost"))
    assert not any(is_loopback(host) for host in (EVERYWHERE, "10.0.0.5", "host"))
    assert address("::1", 80) == "http://[::1]:80/"
    assert address(EVERYWHERE, 80) == "http://127.0.0.1:80/"


@pytest.mark.parametrize(("host", "names"), [(EVERYWHERE, ()), ("10.0.0.5", ()), ("127.0.0.1", ("grader.example",))])
def test_no_reading_beyond_this_machine_without_a_token(quick_store, host, names):
    """It says what to set; with a viewer token it is fine."""
    with pytest.raises(ConfigurationError, match="GRADER_WEB_VIEWER_TOKEN_FILE"):
        make_site(quick_store, Tokens(operator=OTHER), host, names)
    assert not make_site(quick_store, Tokens(viewer=TOKEN), host, names).open_reading


def test_a_taken_port_is_named():
    """With the settings that choose another."""
    with listen("127.0.0.1", 0) as taken, pytest.raises(ConfigurationError, match="GRADER_WEB_PORT"):
        listen("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ConfigurationError, match=r"cannot listen on no\.such\.host\.invalid"):
        listen("no.such.host.invalid", 0)
