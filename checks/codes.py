"""Codes that several checks answer with, and what they mean; each is named here once, whoever answers with it.

A check names all codes that it can answer with in `codes`: its own, and these by `common`. A meaning begins with the
outcome where that is no failure, such as `unverified: …`; `<check>.ok` is the code of every pass.
"""

from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter, ValidationError

from grader_service.model.base import Code

_CODE: TypeAdapter[str] = TypeAdapter(Code)

COMMON: Mapping[str, str] = {
    "timed_out": "unverified: a probe was not done in time",
    "needs_gpu": "unverified: a rehearsal without a GPU cannot do what the code does",
    "no_pipeline": "no DALI pipeline was built",
    "not_carried": "unverified: the DALI graph could not be run again by the grader",
    "ragged": "images of a batch have different sizes",
    "no_images": "no output of the graph holds images",
    "no_such_graph": "unverified: the pipeline that the lab names did not come",
    "graph_failed": "unverified: the DALI graph stopped on the grader's own images",
    "not_run": "unverified: the graph gave no samples to look at",
    "pod_ended": "unverified: the process ended while a probe looked into it",
    "unreadable": "unverified: what a probe read in the process has no usable form",
    "probe_failed": "error or unverified: a probe failed, by our fault or by the learner's objects",
    "not_observed": "error: the run lacks what a probe should have observed",
    "not_measured": "error: the run lacks a measurement",
    "not_scanned": "unverified: `dataset_dir` is no folder that could be searched for images",
    "dataset_dir_missing": "`dataset_dir` is not defined",
}
"""Last word of a code → what it means."""

NO_DALI = ("no_pipeline",)
"""Of `checks.not_carried.no_dali`."""
NOT_CARRIED = ("not_carried", "ragged", "no_images", "needs_gpu")
"""Of `checks.not_carried.not_carried`."""
DATASET = ("dataset_dir_missing", "not_scanned")
"""Of a check that asks for our inventory of the learner's images."""
MEASUREMENT = ("not_measured",)
"""Of a check that asks for a measurement, beside `NO_DALI` and `NOT_CARRIED`."""
LEARNER_PROBE = (
    "not_observed", "not_carried", "graph_failed", "timed_out", "pod_ended", "probe_failed", "unreadable",
)  # fmt: skip
"""Of `checks.probing.read_probe` for a probe of the site `learner`."""
GRAPH_PROBE = (
    *NO_DALI, "not_observed", "not_carried", "graph_failed", "timed_out", "pod_ended", "probe_failed",
)  # fmt: skip
"""Of `checks.probing.read_probe` for a probe of the site `graph`."""


def common(word: str, *groups: Sequence[str]) -> dict[str, str]:
    """Codes of these groups under the first word of a check's codes, each with its meaning."""
    return {f"{word}.{last}": COMMON[last] for group in groups for last in group}


def code_problem(code: object) -> str:
    """Why no verdict can carry a code; empty where it can."""
    try:
        _CODE.validate_python(code)
    except ValidationError:
        return (
            f"the code {code!r:.200} cannot stand in a verdict; expected <word>.<reason> of a-z, 0-9 and _, beginning "
            "with a letter, at most 80 characters in all"
        )
    return ""


def needs_review(outcome: str, code: str) -> bool:
    """Whether an answer waits for a person: it is inconclusive, and its code's last word says so."""
    return outcome == "inconclusive" and code.endswith(".needs_review")


def outcomes_of(code: str, meaning: str) -> frozenset[str]:
    """With which outcomes a code may come: the words before its meaning's colon; without any, that of a failure."""
    said, colon, _ = meaning.partition(": ")
    if colon:
        return frozenset(said.split(" or "))
    return frozenset({"passed" if code.endswith(".ok") else "failed"})
