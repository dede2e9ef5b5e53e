"""Which file of an archive is run."""

from typing import NoReturn

from grader_service.errors import SubmissionRejected

NAMED = ("submission.py", "submission.ipynb")
SUFFIXES = (".py", ".ipynb")


def choose_entry(paths: list[str], holder: str = "archive") -> str:
    """The entry point: `submission.py`, `submission.ipynb`, or the only Python file or notebook at the top.

    Args:
        paths: of all files, relative to the top of what the learner calls the `holder`.

    Raises:
        SubmissionRejected: none, or more than one.
    """
    top = [path for path in paths if "/" not in path]
    named = [path for path in top if path.lower() in NAMED]
    candidates = named or [path for path in top if path.lower().endswith(SUFFIXES)]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        _reject(
            "none",
            f"The {holder} has no submission.py, submission.ipynb or other Python file or notebook at its top; "
            f"it holds {_listed(paths)}. Put the file that should run at the top and name it submission.py or "
            "submission.ipynb.",
        )
    return _reject(
        "ambiguous",
        f"It is not clear which of {_listed(candidates)} should run. "
        "Name the one that should submission.py or submission.ipynb.",
    )


def _listed(paths: list[str]) -> str:
    shown = ", ".join(ascii(path)[:60] for path in paths[:5])
    return shown + (f" and {len(paths) - 5} more" if len(paths) > 5 else "") if paths else "no files"


def _reject(reason: str, feedback: str) -> NoReturn:
    raise SubmissionRejected(f"entry.{reason}", feedback)
