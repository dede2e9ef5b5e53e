"""Cohorts and batches as a course has them: mostly passing, some failing, a few that could not be decided."""

import random
from dataclasses import replace

from grader_service.model.verdict import Status
from grader_service.model.verdict_summary import CohortEntry, RateSummary, RatioSummary
from grader_service.regrade.diff import diff_of
from grader_service.report.cohort.pages import batch_page
from tests.regrade.makers import CHECKS, MOMENT, a_batch, a_check, a_progress, a_summary, repeated

HOSTILE = (
    "</script><script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    "line\u2028separator \u2029 \u202egnp.exe",
    '=HYPERLINK("https://reports.invalid")',
    "{{ 7 * 7 }} ${7 * 7} --> ]]>",
    "W" * 200,
)
OUTCOMES = {
    "jpeg_dataset": ("passed",) * 46 + ("failed",) * 3 + ("skipped",),
    "cuda_batch": ("passed",) * 43 + ("failed",) * 5 + ("skipped",) * 2,
    "reflections": ("passed",) * 39 + ("failed",) * 11,
}
"""Fifty chances of each check that is not measured."""


def entries(count, *, seed=1, hostile=True):
    """So many submissions, the same ones for the same seed."""
    chance = random.Random(seed)
    for number in range(count):
        summary = graded(number, chance, threshold=1.1, hostile=hostile)
        received = MOMENT - 86400 * 14 + chance.random() * 86400 * 14
        name = "<b>lab</b>.ipynb" if hostile and number == 3 else f"submission-{number}.ipynb"
        yield CohortEntry(summary, received, received - 2.0 if number % 7 else None, name)


def graded(number, chance, *, threshold, hostile=True, spread=0.0):
    """One verdict: the ratio decides its check by the threshold, where its interval allows."""
    submission = f"sub-{number:05d}"
    fields = {
        "verdict_id": f"{chance.getrandbits(128):032x}",
        "run_id": f"{chance.getrandbits(128):032x}",
        "learner": HOSTILE[number] if hostile and number < len(HOSTILE) else f"learner-{number * 7919 % 100_000:05d}",
    }
    if chance.random() < 0.02:
        status, code = chance.choice(
            [(Status.REJECTED, "submission.unreadable"), (Status.ERROR, "grader.sandbox_gone")]
        )
        nothing = {"checks": (), "status": status, "code": code, "score": None, "ratio": None, "rates": {}}
        return a_summary(submission, **nothing, **fields)
    outcomes = {check: chance.choice(chances) for check, chances in OUTCOMES.items()}
    if outcomes["cuda_batch"] != "passed" or chance.random() < 0.04:
        outcomes["throughput_ratio"] = chance.choice(("skipped", "unverified"))
        return a_summary(submission, outcomes, ratio=None, rates={}, **fields)
    ratio = chance.lognormvariate(0.36, 0.25) * chance.lognormvariate(0, spread)
    width = 1 + chance.lognormvariate(-3.0, 0.5)
    low, high = ratio / width, ratio * width
    outcomes["throughput_ratio"] = "passed" if low > threshold else "failed" if high <= threshold else "inconclusive"
    base = chance.lognormvariate(6.6, 0.3)
    arms = {"dali": base * ratio, "pytorch": base, "reference_declared": base * 0.93}
    if number % 3 == 0:
        arms["reference_fair"] = base * 0.97
    rates = {arm: RateSummary(median=rate, low=rate * 0.96, high=rate * 1.05) for arm, rate in arms.items()}
    measured = RatioSummary(ratio=ratio, low=low, high=high)
    return a_summary(submission, outcomes, ratio=measured, rates=rates, **fields)


def changes(count, *, repeats=1):
    """A batch that raises the threshold from 1.1 to 1.3, or one that runs everything again several times."""
    for number in range(count):
        old = graded(number, random.Random(f"1 {number}"), threshold=1.1)
        again = [
            graded(number, random.Random(f"1 {number}"), threshold=1.3, spread=0.02 * (place > 0))
            for place in range(repeats)
        ]
        fields = {"outdated": number % 60 == 59, "newer": int(number % 45 == 0)}
        change = repeated(old.submission_id, *again, old=old, **fields)
        yield change if repeats > 1 else change.model_copy(update={"repeats": ()})


def measured_again(given):
    """The same changes as if each submission had been run again: DALI came out otherwise, the loaders as before."""
    chance = random.Random(1)
    for change in given:
        new, factor = change.new, chance.lognormvariate(0.0, 0.1)
        if new is not None and new.ratio is not None:
            ratio = RatioSummary(**{name: value * factor for name, value in new.ratio})
            dali = RateSummary(**{name: value * factor for name, value in new.rates["dali"]})
            new = new.model_copy(update={"ratio": ratio, "rates": {**new.rates, "dali": dali}})
        yield change.model_copy(update={"new": new})


def page_of(given, **batch) -> str:
    """The page of a batch with these changes."""
    given = list(given)
    return batch_page(diff_of(a_batch(**batch), a_progress(counts={"done": len(given)}), iter(given)), given)


def wide(count):
    """Submissions to a lab with many checks, each with long ids and points of its own: the largest tables there are."""
    chance = random.Random(2)
    for entry in entries(count, seed=2, hostile=False):
        extra = tuple(
            a_check(f"extra_check_{number}", "failed" if chance.random() < 0.2 else "passed", step=f"step_{number % 5}")
            for number in range(16 - len(CHECKS))
        )
        submission = f"platform:course-2026:{chance.getrandbits(64):016x}"
        changed = {"checks": entry.summary.checks + extra, "submission_id": submission}
        yield replace(entry, summary=entry.summary.model_copy(update=changed))
