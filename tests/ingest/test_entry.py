"""Which file of an archive is run: named ones first, else the only candidate at the top, never a guess."""

import pytest

from grader_service.ingest.entry import choose_entry
from tests.ingest.packing import refusal


@pytest.mark.parametrize(
    ("paths", "entry"),
    [
        (["submission.py"], "submission.py"),
        (["submission.ipynb"], "submission.ipynb"),
        (["a.py", "b.py", "submission.py"], "submission.py"),
        (["helpers.py", "submission.ipynb"], "submission.ipynb"),
        (["Submission.PY", "other.ipynb"], "Submission.PY"),
        (["lab.py", "data/a.jpg"], "lab.py"),
        (["lab.ipynb", "src/helpers.py", "src/submission.py"], "lab.ipynb"),
        (["My Lab.IPYNB", "README.md"], "My Lab.IPYNB"),
        (["数据.py"], "数据.py"),
    ],
)
def test_the_entry_point(paths, entry):
    """Named ones win over others; files in folders and other kinds never count."""
    assert choose_entry(paths) == entry


@pytest.mark.parametrize(
    "paths",
    [
        ["submission.py", "submission.ipynb"],
        ["a.py", "b.py"],
        ["a.py", "b.ipynb"],
        ["submission.py", "SUBMISSION.PY"],
    ],
)
def test_two_candidates(paths):
    """The message names both and says how to decide."""
    code, feedback = refusal(choose_entry, paths)
    assert code == "entry.ambiguous"
    assert all(repr(path) in feedback for path in paths)
    assert "submission.py or submission.ipynb" in feedback


@pytest.mark.parametrize("paths", [[], ["README.md"], ["src/submission.py"], ["a.pyw", "b.py.txt", "c.ipynb.json"]])
def test_no_candidate(paths):
    """The message lists what came and says what to do."""
    code, feedback = refusal(choose_entry, paths)
    assert code == "entry.none"
    assert (repr(paths[0]) if paths else "no files") in feedback
    assert "Put the file that should run at the top" in feedback


def test_long_lists_and_names_are_cut():
    """What is quoted from an archive stays short and plain."""
    names = [f"{'é' * 200}{number}.txt" for number in range(1000)]
    _, feedback = refusal(choose_entry, names)
    assert len(feedback) < 800
    assert feedback.isascii()
    assert "and 995 more" in feedback
