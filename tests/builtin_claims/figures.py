"""Error figures of checks: counted on controls, and held to what the check's docstring says."""

import re
from collections.abc import Iterable
from typing import Any

from checks.api import CheckResult
from grader_service.model.verdict import Outcome


def assert_figures(check: Any, good: Iterable[CheckResult], bad: Iterable[CheckResult]) -> None:
    """The docstring's numbers are those of these results: `N false accepts` and `M false rejects` on all of them.

    Args:
        check: the check.
        good: results on controls that should pass.
        bad: results on controls that should not.
    """
    good, bad = list(good), list(bad)
    rejects = sum(result.outcome is not Outcome.PASSED for result in good)
    accepts = sum(result.outcome is Outcome.PASSED for result in bad)
    text = " ".join((type(check).__doc__ or "").split())
    said = re.search(r"(\d+) false accepts of (\d+) and (\d+) false rejects? of (\d+)", text)
    assert said is not None, "the docstring states no figures"
    counted = (accepts, len(bad), rejects, len(good))
    assert tuple(map(int, said.groups())) == counted
