"""Says why a submission's code did not get far enough, in words for the learner."""

from checks.api import CheckResult, failed, undecided
from checks.diagnosis import Diagnosis, diagnose
from checks.diagnosis.silent import endless_iterator
from grader_service.model.base import Details
from grader_service.model.evidence import Discovery, Ending, Evidence, Place, PodRole
from grader_service.model.verdict import Outcome, Tier

MAX_ADVICE = 600
"""Characters that cause and remedy may add to what is said of a stop."""
_ENDINGS = {
    Ending.TIMED_OUT: (
        "timed_out",
        "Your code was still running when its time was up, so nothing of it could be graded. Look for a loop without "
        "an end: a DALI iterator built without reader_name (or size) never stops by itself.",
    ),
    Ending.OUT_OF_MEMORY: (
        "out_of_memory",
        "Your code used more memory than the lab allows and was stopped. Use smaller batches or fewer loader workers, "
        "and do not keep decoded images in lists.",
    ),
    Ending.EXITED: (
        "exited",
        "Your code ended the whole Python process (for example with os._exit, a crash in native code, or by killing "
        "itself), so nothing could be read afterwards. Let the code run to its end.",
    ),
    Ending.PROTOCOL_VIOLATION: (
        "interfered",
        "Your code wrote to the grader's own connection, so what it left behind could not be read. "
        "Do not touch file descriptors that your code did not open.",
    ),
}


def no_evidence(evidence: Evidence, check: str) -> CheckResult:
    """The result of a check when the learner's pod ended without saying what it left behind."""
    word, feedback, details = how_it_ended(evidence)
    return failed(f"{check}.{word}", feedback, details=details)


def how_it_ended(evidence: Evidence) -> tuple[str, str, Details]:
    """Last word of the code, feedback and details of that result."""
    pod = evidence.run.ending_of(PodRole.LEARNER)
    ending = pod.ending if pod is not None else Ending.EXITED
    word, feedback = _ENDINGS.get(ending, _ENDINGS[Ending.EXITED])
    exit_code = pod.exit_code if pod is not None else None
    return word, feedback, {"ending": ending.value, "exit_code": exit_code}


def stopped_before(discovery: Discovery) -> str:
    """What stopped the code half-way, and what to do where that is known; empty when it ran to its end."""
    if discovery.ran == "completed":
        return ""
    if discovery.ran == "exited":
        return f" Your code left early with exit code {discovery.exit_code}."
    exception = discovery.exception
    if exception is None:
        return ""
    where = f" at {_place(exception.place)}" if exception.place is not None else ""
    if discovery.ran == "timed_out":
        stop = f" Your code was still running{where} when its time was up, and was stopped."
        return stop + _advice(endless_iterator(discovery), None)
    stop = f" Your code stopped{where} with {exception.type}: {exception.message[:600]}"
    return stop + _advice(diagnose(exception), exception.place)


def missing(discovery: Discovery, check: str, name: str, wanted: str, *, code: str | None = None) -> CheckResult:
    """The result when a name that the check needs is not there: a failure, or for a rehearsal perhaps no answer.

    The failure's code is `<check>.<name>_missing` unless another is given.
    """
    stopped = stopped_before(discovery)
    return without_name(check, name, wanted, needs_gpu=discovery.needs_gpu, stopped=stopped, code=code)


def without_name(
    check: str, name: str, wanted: str, *, needs_gpu: str, stopped: str, code: str | None = None
) -> CheckResult:
    """The same from the two facts that it depends on; see `Discovery.needs_gpu` and `stopped_before`."""
    if needs_gpu:
        return undecided(
            Outcome.UNVERIFIED,
            f"{check}.needs_gpu",
            f"`{name}` was not set, because your code does something that a rehearsal without a GPU cannot do: "
            f"{needs_gpu[:600]} Grade it on a host with a GPU.",
            tier=Tier.CLAIMS,
        )
    text = f"`{name}` is not defined. It should hold {wanted}.{stopped}"
    return failed(code or f"{check}.{name}_missing", text)


def _advice(found: Diagnosis | None, stopped_at: Place | None) -> str:
    """The likely cause, at its own line where that is another one, and the remedy."""
    if found is None:
        return ""
    where = f", at {_place(found.place)}" if found.place is not None and not _same(found.place, stopped_at) else ""
    text = f" Likely cause{where}: {found.cause} What to do: {found.remedy}"
    return text if len(text) <= MAX_ADVICE else text[: MAX_ADVICE - 1] + "…"


def _same(place: Place, other: Place | None) -> bool:
    if other is None or (place.cell, place.line) != (other.cell, other.line):
        return False
    # A message names a cell by its own file, and a module without its folder.
    return place.cell is not None or place.file.rpartition("/")[2] == other.file.rpartition("/")[2]


def _place(place: Place) -> str:
    where = f"cell {place.cell}, line {place.line}" if place.cell is not None else f"{place.file}, line {place.line}"
    return f"{where} (`{place.source}`)" if place.source else where
