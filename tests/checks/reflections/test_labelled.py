"""Error rates on labelled lists; what the files are stands in `labelled/README.md`.

The lists in `blind` were written by people who saw neither the check nor the training lists, and were judged once
when the model was done; nothing of it was changed for them. They alone are an estimate for new lists.
"""

import pytest

from bench.reflections_lists import read
from tests.checks.reflections.lists import judge

MOST_WRONG = 0.02
"""Of each sort of list that the model never saw, decided wrongly."""
MOST_OPEN = 0.08


def outcomes(lists):
    """Share of each outcome, by whether the lists are good."""
    found = {True: [], False: []}
    for one in lists:
        found[one.good].append(judge(one.wins, one.loses).outcome.value)
    return {good: {word: seen.count(word) / len(seen) for word in set(seen)} for good, seen in found.items()}


def test_lists_that_the_model_never_saw():
    """Hardly one is decided wrongly, few are left to a person."""
    shares = outcomes(read("blind"))
    assert shares[True].get("failed", 0) <= MOST_WRONG, shares
    assert shares[False].get("passed", 0) <= MOST_WRONG, shares
    assert all(shares[good].get("inconclusive", 0) <= MOST_OPEN for good in (True, False)), shares


@pytest.mark.parametrize("every", [10])
def test_lists_that_it_learned_from(every):
    """A tenth of them: a model that does not fit the code would show here."""
    shares = outcomes(read("train")[::every])
    assert shares[True].get("failed", 0) <= MOST_WRONG, shares
    assert shares[False].get("passed", 0) <= 2 * MOST_WRONG, shares
