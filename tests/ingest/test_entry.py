"""Which file of an archive is run: named ones first, else the only candidate at the top, never a guess."""

import pytest

from grader_service.errors import SubmissionRejected
from grader_service.ingest.entry import choose_entry


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
    with pytest.raises(SubmissionRejected) as raised:
        choose_entry(paths)
    assert raised.value.code == "entry.ambiguous"
    assert all(repr(path) in raised.value.feedback for path in paths)
    assert "submission.py or submission.ipynb" in raised.value.feedback


@pytest.mark.parametrize("paths", [[], ["README.md"], ["src/submission.py"], ["a.pyw", "b.py.txt", "c.ipynb.json"]])
def test_no_candidate(paths):
    """The message lists what came and says what to do."""
    with pytest.raises(SubmissionRejected) as raised:
        choose_entry(paths)
    assert raised.value.code == "entry.none"
    assert (repr(paths[0]) if paths else "no files") in raised.value.feedback
    assert "Put the file that should run at the top" in raised.value.feedback


def test_long_lists_and_names_are_cut():
    """What is quoted from an archive stays short and plain."""
    names = [f"{'é' * 200}{number}.txt" for number in range(1000)]
    with pytest.raises(SubmissionRejected) as raised:
        choose_entry(names)
    assert len(raised.value.feedback) < 800
    assert raised.value.feedback.isascii()
    assert "and 995 more" in raised.value.feedback
