"""Error rates on labelled lists.

`dev.jsonl` was written by others and used while the rules were made; `authored.jsonl` was written beside the rules, in
parts that were each judged once before anything was changed for them. Files added later are held to the same bounds.
"""

import json
from pathlib import Path

import pytest

from tests.checks.reflections.lists import judge

FILES = sorted((Path(__file__).parent / "labelled").glob("*.jsonl"))
MOST_WRONG = 0.05


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_error_rates(file):
    """At most 5 % of the honest lists fail, and at most 5 % of the others pass."""
    wrong = {"accept": [], "reject": []}
    total = {"accept": 0, "reject": 0}
    for line in file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        result = judge(case["where_dali_wins"], case["where_dali_loses"])
        total[case["label"]] += 1
        if (result.outcome == "passed") != (case["label"] == "accept"):
            wrong[case["label"]].append((case["id"], case["kind"], result.code))
    for label, cases in wrong.items():
        assert len(cases) <= MOST_WRONG * total[label], (label, cases)


def test_there_are_labelled_lists():
    """An empty folder would prove nothing."""
    assert FILES
