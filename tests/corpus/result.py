"""How a case came out, and what that means for the grader."""

import time
import traceback
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from grader_service.service.local import Graded
from tests.corpus.case import NOT_REACHED, SUBMISSION, Case, Honest, Observed
from tests.corpus.world import World

_ALL_BUT_THE_GPU = "ratio.not_seen"
"""Fast enough, with the right pixels: what stops learner code then is that no GPU was seen to decode, and without a GPU
every such code is stopped, honest or not."""


class Finding(StrEnum):
    """What a result says of the grader."""

    RIGHT = "right"
    FALSE_ACCEPT = "false accept"
    """A cheat passed its target, or everything that a rehearsal can put it to."""
    FALSE_REJECT = "false reject"
    """Good faith lost a point, or a cheat cost what is honest beside it."""
    OTHER_REASON = "other reason"
    """A cheat did not pass, but not for the reason that its case names: the case proves nothing."""
    HARNESS_ERROR = "harness error"
    LEAK = "leak"
    """A container, volume or folder outlived the case."""
    LATE = "late"
    """The verdict was not there within the case's deadline."""


@dataclass(frozen=True)
class Result:
    """One played case."""

    id: str
    kind: str
    title: str
    target: str
    wanted: str
    outcome: str
    code: str
    finding: Finding
    detail: str
    seconds: float
    again: str = ""
    """What a first play ended with, where ours was the failure; empty when there was one play."""

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "finding": self.finding.value}


def shortened(detail: str) -> str:
    """Both ends of a long text: feedback begins with its figures, a traceback ends with its error."""
    return detail if len(detail) <= 800 else f"{detail[:400]} … {detail[-400:]}"


def play(case: Case, world: World) -> Result:
    """Plays one case. What a busy host caused is played once more, as the service would, and is told."""
    result = _once(case, world)
    if result.finding is Finding.RIGHT or not _of_the_host(result):
        return result
    return replace(_once(case, world), again=f"{result.finding.value}, {result.seconds:.0f} s: {result.detail}")


def check(case: Case, world: World) -> None:
    """Plays a case as a test.

    Raises:
        AssertionError: its result is not right.
    """
    result = play(case, world)
    if result.again:
        print(f"played again after {result.again}")
    told = f"{result.finding.value}: {result.outcome} {result.code}, wanted {result.wanted}\n{shortened(result.detail)}"
    assert result.finding is Finding.RIGHT, told


def _of_the_host(result: Result) -> bool:
    """An infrastructure failure, a late verdict, a slow attempt, or a host that was too unsteady to measure on."""
    return result.finding in (Finding.HARNESS_ERROR, Finding.LATE) or result.code in ("pod.late", "ratio.host_unsteady")


def _once(case: Case, world: World) -> Result:
    """Whatever happens is a result."""
    started = time.monotonic()
    try:
        if isinstance(case, Honest):
            observed, finding = _honest(case, world.graded(case))
        else:
            observed = case.play(world)
            finding = _attacked(case, observed)
    except Exception:  # noqa: BLE001 - one broken case must not hide the others
        observed, finding = Observed("error", "harness", traceback.format_exc(limit=-6)), Finding.HARNESS_ERROR
    seconds = time.monotonic() - started
    left = world.leftovers()
    if finding is Finding.RIGHT and left:
        finding, observed = Finding.LEAK, Observed(observed.outcome, observed.code, ", ".join(left))
    if finding is Finding.RIGHT and seconds > case.deadline_s:
        finding = Finding.LATE
    return Result(
        id=case.id,
        kind="honest" if isinstance(case, Honest) else "cheat",
        title=case.title,
        target="all checks" if isinstance(case, Honest) else case.target,
        wanted=_wanted(case),
        outcome=observed.outcome,
        code=observed.code,
        finding=finding,
        detail=observed.detail[:2000],
        seconds=round(seconds, 2),
    )


def _attacked(case: Case, observed: Observed) -> Finding:
    """What an attack's result means."""
    assert not isinstance(case, Honest)
    if observed.outcome == "passed" or observed.code in {_ALL_BUT_THE_GPU} - {*case.codes}:
        return Finding.FALSE_ACCEPT
    if observed.outcome == "error" and observed.code not in case.codes:
        return Finding.HARNESS_ERROR
    if observed.code not in case.codes:
        return Finding.OTHER_REASON
    spared = getattr(case, "others", {})
    if any(observed.others.get(check) not in codes for check, codes in spared.items()):
        return Finding.FALSE_REJECT
    return Finding.RIGHT


def _honest(case: Honest, done: Graded) -> tuple[Observed, Finding]:
    """What an honest submission's result means: every check passes, or answers as the case says."""
    verdict = done.verdict
    if done.failure is not None:
        return Observed("error", verdict.code, str(done.failure)), Finding.HARNESS_ERROR
    if not verdict.checks or (verdict.status.value == "rejected" and SUBMISSION not in case.codes):
        return Observed(verdict.status.value, verdict.code, verdict.feedback), Finding.FALSE_REJECT
    wrong = [
        check
        for check in verdict.checks
        if (check.code not in case.codes[check.id] if check.id in case.codes else check.outcome.value != "passed")
        or case.says.get(check.id, "") not in check.feedback
        or (check.code == NOT_REACHED and check.score is not None)  # open, where only a GPU was missing
    ]
    ran = done.evidence.discovery.ran if done.evidence is not None and done.evidence.discovery is not None else "lost"
    if not wrong and not case.codes and ran not in ("completed", "exited"):
        return Observed("failed", f"run.{ran}", "its code did not run to its end, which no check looked at"), (
            Finding.FALSE_REJECT
        )
    if wrong:
        told = "; ".join(f"{check.id}: {check.code}: {check.feedback}" for check in wrong)
        return Observed(wrong[0].outcome.value, wrong[0].code, told), Finding.FALSE_REJECT
    return Observed(verdict.status.value, verdict.code), Finding.RIGHT


def _wanted(case: Case) -> str:
    """The right answers, to be read."""
    if isinstance(case, Honest):
        return (
            "; ".join(f"{check}: {' or '.join(codes)}" for check, codes in case.codes.items()) or "every check passes"
        )
    return " or ".join(case.codes)
