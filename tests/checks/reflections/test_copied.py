"""Copies of the lab's pages, tested on made-up text."""

import pytest

from bench.reflections_fingerprints import fingerprint, main
from checks.prose.copied import EXAMPLES, fingerprints, is_copied, runs

PAGE = (
    "Seven grey herons stood beside the slow canal while the ferry carried crates of copper wire to the northern quay. "
    "Nobody on the bridge noticed that the second crane had stopped turning before the whistle sounded at noon."
)
KNOWN = frozenset(runs(PAGE))


@pytest.fixture
def only_the_page(monkeypatch):
    """Nothing but our made-up page is known."""
    monkeypatch.setattr("checks.prose.copied.fingerprints", lambda: KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "Nobody on the bridge noticed that the second crane had stopped turning before the whistle sounded at noon.",
        "NOBODY on the bridge noticed that the second crane had, at last, stopped turning before the whistle sounded!",
        "the ferry carried crates of copper wire to the northern quay",
    ],
)
def test_copies(text, only_the_page):
    """Verbatim, with small changes, or in part."""
    assert is_copied(text)


@pytest.mark.parametrize(
    "text",
    [
        "At our quay a crane lifts crates, and the second crane had stopped when I arrived, so they had to wait.",
        "copper wire to the northern quay",
        "",
        "A sentence about something else entirely that shares no run of four words with it.",
    ],
)
def test_own_words(text, only_the_page):
    """A borrowed phrase is fine."""
    assert not is_copied(text)


def test_fingerprints_hold_no_text(tmp_path, capsys, monkeypatch):
    """The file is hashes only, sorted, and made by one command."""
    page = tmp_path / "page.txt"
    page.write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["fingerprint", str(page)])
    main()
    made = capsys.readouterr().out
    assert made == fingerprint([PAGE])
    values = [value for line in made.splitlines()[1:] for value in line.split()]
    assert values == sorted(values)
    assert {int(value, 16) for value in values} == KNOWN


def test_the_lab_is_fingerprinted():
    """The committed file is there and large."""
    assert len(fingerprints()) > 3000


def test_our_own_examples_count_as_copied():
    """What feedback shows is nobody's answer."""
    for example in EXAMPLES.values():
        assert is_copied(example)
        assert is_copied(example.replace("CPU", "processor").upper())
