"""Says what became of the run of a learner's code: how it ended, where, why, and what to do; pure."""

import re

from checks.diagnosis import Diagnosis, diagnose
from checks.diagnosis.silent import endless_iterator
from grader_service.model.discovery import Discovery, LearnerException
from grader_service.model.evidence import Ending, Evidence, PodRole
from grader_service.model.feedback import MAX_SENTENCE
from grader_service.model.place import Place
from grader_service.model.run_report import RunEnding, RunException, RunReport

_MOST_MESSAGE = 240
"""Characters of an exception's message in the first sentence; the traceback has more of it."""
_MOST_TRACED = 4000
_MOST_LINES = 40
_CELL = re.compile(r"(?:File )?\"?[^\s\"']{0,200}/notebook-cells/cell_0{0,5}(\d{1,6})\.py\"?")
_OUR_FRAME = re.compile(
    r"^ {2}File \"[^\"\n]{0,300}/grader_guest/[^\"\n]{0,200}\", line \d{1,7}, in [^\n]{0,200}\n"
    r"(?: {4}[^\n]{0,500}\n){0,3}",
    re.MULTILINE,
)
_SYNTAX = frozenset({"SyntaxError", "IndentationError", "TabError"})
_LOOK_FOR_THE_LOOP = "Look for a loop that does not end in time there, and run fewer epochs or steps."
_KILLED = {
    Ending.OUT_OF_MEMORY: (
        "run.out_of_memory",
        "Your code used more memory than the lab allows, and was ended.",
        "Use smaller batches or fewer loader workers, and do not keep decoded images in lists.",
    ),
    Ending.PROTOCOL_VIOLATION: (
        "run.interfered",
        "Your code wrote to the grader's own connection, so what it left behind could not be read.",
        "Leave file descriptors alone that your code did not open.",
    ),
}
_CRASHED = (
    "run.crashed",
    "Your code ended the whole Python process, so nothing of it could be read{how}.",
    "Let the code run to its end: look for os._exit, for a kill of its own process, and at the last output.",
)


def report(evidence: Evidence) -> RunReport:
    """What happened while the code ran.

    How a pod ended is the host's word; what happened inside it is what the learner's process said of itself. No grade
    depends on it but that what was not reached earns nothing.
    """
    limit, output = evidence.run.learner_limit_s or None, _tail(evidence.run.learner_output)
    discovery = evidence.discovery
    found = _without_a_word(evidence) if discovery is None else _of(discovery, evidence.run.entry_point, limit)
    return found.model_copy(update={"limit_s": limit, "output_tail": output})


def _without_a_word(evidence: Evidence) -> RunReport:
    pod = evidence.run.ending_of(PodRole.LEARNER)
    if pod is not None and pod.ending is Ending.TIMED_OUT:
        return RunReport(
            state=RunEnding.TIMED_OUT,
            code="run.timed_out",
            outcome="Your code was still running when its time was up, and did not let itself be stopped.",
            remedy=_LOOK_FOR_THE_LOOP,
        )
    if pod is not None and pod.ending in _KILLED:
        code, outcome, remedy = _KILLED[pod.ending]
    else:
        code, outcome, remedy = _CRASHED
        status = pod.exit_code if pod is not None else None
        outcome = outcome.format(how="" if status is None else f" (exit status {status})")
    return RunReport(state=RunEnding.KILLED, code=code, outcome=outcome, remedy=remedy)


def _of(discovery: Discovery, entry: str, limit_s: float | None) -> RunReport:
    exception = discovery.exception
    took = discovery.duration_s
    if discovery.ran == "completed":
        outcome = f"Your code ran to its end in {_seconds(took)}."
        return RunReport(state=RunEnding.COMPLETED, code="run.completed", outcome=outcome, seconds=took)
    at = f" at {exception.place.where}" if exception is not None and exception.place is not None else ""
    facts = {"place": exception.place if exception is not None else None, "seconds": took}
    if discovery.ran == "exited":
        return RunReport(
            state=RunEnding.RAISED,
            code="run.exited",
            outcome=f"Your code ended itself{at}, with exit code {discovery.exit_code}, before its last line.",
            remedy="Leave out sys.exit() and exit(), or call them in the last line.",
            **facts,
        )
    if discovery.ran == "stalled":
        return RunReport(
            state=RunEnding.STALLED,
            code="run.stalled",
            outcome=f"Your code waited{at} without doing anything, and was ended after {_seconds(took)}.",
            remedy="Look for what it waits for there: input(), a lock, a queue or a worker that never answers.",
            traceback=_traceback(exception),
            **facts,
        )
    if discovery.ran == "timed_out":
        given = f" of {_seconds(limit_s)}" if limit_s else ""
        loop = endless_iterator(discovery)
        why = f": {loop.cause}" if loop is not None else ", and was stopped."
        return RunReport(
            state=RunEnding.TIMED_OUT,
            code="run.timed_out",
            outcome=f"Your code was still running{at} when its time{given} was up{why}",
            cause=loop.cause if loop is not None else "",
            remedy=loop.remedy if loop is not None else _LOOK_FOR_THE_LOOP,
            traceback=_traceback(exception),
            **facts,
        )
    return _raised(discovery, exception or LearnerException(type="Exception", message=""), entry)


def _raised(discovery: Discovery, exception: LearnerException, entry: str) -> RunReport:
    place = exception.place
    syntax = place is not None and exception.type in _SYNTAX
    # Python reads a module whole before it runs a line of it, and a notebook cell by cell.
    unstarted = (
        exception.type in _SYNTAX
        and place is not None
        and len(exception.frames) == 1
        and place.cell is None
        and place.file == entry.rpartition("/")[2]
    )
    found = diagnose(exception)
    if discovery.needs_gpu:
        at = f", from {place.where} on" if place is not None else ""
        code, outcome = "run.needs_gpu", f"Your code needs a GPU{at}, and there is none here."
    elif unstarted:
        code, outcome = "run.syntax_error", _stop("None of your code ran: Python cannot read it", exception, found)
    else:
        code, outcome = "run.syntax_error" if syntax else "run.raised", _stop("Your code stopped", exception, found)
    return RunReport(
        state=RunEnding.NOT_STARTED if unstarted else RunEnding.RAISED,
        code=code,
        outcome=outcome,
        place=exception.place,
        exception=RunException(type=exception.type, message=_presentable(exception.message)),
        cause=found.cause if found is not None and not discovery.needs_gpu else "",
        cause_place=found.place if found is not None and not _same(found.place, exception.place) else None,
        remedy=_remedy(discovery, exception, found, syntax=syntax),
        traceback=_traceback(exception),
        seconds=discovery.duration_s,
    )


def _stop(verb: str, exception: LearnerException, found: Diagnosis | None) -> str:
    """One sentence: where it stopped, and the likely mistake; where that is not known, what Python said."""
    at = f" at {exception.place.where}" if exception.place is not None else ""
    if found is None:
        first = next(iter(_presentable(exception.message).strip().splitlines()), "")
        said = f"{exception.type}: {first}" if first else exception.type
        return f"{verb}{at} with {said if len(said) <= _MOST_MESSAGE else said[: _MOST_MESSAGE - 1] + '…'}"
    where = found.place
    elsewhere = f", because of {where.where}" if where is not None and not _same(where, exception.place) else ""
    said = f"{verb}{at} ({exception.type}){elsewhere}: {found.cause}"
    return said if len(said) <= MAX_SENTENCE else f"{said[: MAX_SENTENCE - 1]}…"  # with long names of a learner's


def _remedy(discovery: Discovery, exception: LearnerException, found: Diagnosis | None, *, syntax: bool) -> str:
    if discovery.needs_gpu:
        return "Grade it on a host with a GPU: a rehearsal without one cannot do this."
    if found is not None:
        return found.remedy
    if syntax:
        return "Correct that line or the one before it: look for a bracket, a quote or a colon that is missing."
    if exception.place is None:
        return "Run the whole code yourself, top to bottom in a fresh process, and look where it stops."
    return f"Correct {exception.place.where}, then run the whole code top to bottom in a fresh process."


def _same(place: Place | None, other: Place | None) -> bool:
    """Whether both are one line. A message names a cell by its own file, and a module without its folder."""
    if place is None or other is None or (place.cell, place.line) != (other.cell, other.line):
        return place is other
    return place.cell is not None or place.file.rpartition("/")[2] == other.file.rpartition("/")[2]


def _traceback(exception: LearnerException | None) -> str:
    """As Python shows it, but for the lines of libraries."""
    if exception is None:
        return ""
    lines = ["Traceback (most recent call last):"]
    for frame in exception.frames:
        file = f"Cell {frame.cell}" if frame.cell is not None else f'File "{frame.file}"'
        inside = "" if frame.function in {"", "<module>"} else f", in {frame.function}"
        lines += [f"  {file}, line {frame.line}{inside}", *([f"    {frame.source}"] if frame.source else [])]
    message = _presentable(exception.message)
    lines.append(f"{exception.type}: {message}" if message else exception.type)
    text = "\n".join(lines)
    return text if len(text) <= _MOST_TRACED else f"{text[: _MOST_TRACED - 1]}…"


def _tail(output: str) -> str:
    """The last lines of what was printed."""
    return "\n".join(_presentable(output).rstrip().splitlines()[-_MOST_LINES:])[-_MOST_TRACED:]


def _presentable(text: str) -> str:
    """Without lines of ours in a traceback, and with cells by their numbers instead of by our files."""
    return _CELL.sub(lambda found: f"cell {found[1]}", _OUR_FRAME.sub("", text))


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"
