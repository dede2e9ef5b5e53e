"""A process that judges every case of a check and writes down what happened; see `authoring.suite`, which starts it.

trial.py JOB RESULT        both files of JSON; the job holds the fields of `Job`
"""

import contextlib
import hashlib
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from checks.api import Result
from checks.authoring.cases import Case, all_cases
from checks.authoring.limits import lacks_of, problems_of
from checks.authoring.material import Recorded, read_recorded
from checks.authoring.planted import hidden_variants, leaks, shows, told
from checks.authoring.purity import Watch
from checks.authoring.target import Target, load_target, source_of
from checks.raising import raised
from grader_service.model.base import Wire
from grader_service.model.evidence import Evidence

CASE_LIMIT_S = 10.0
"""A judge that is still busy with one case after that is stopped."""
MAX_SLOW = 3
_CLOSELY = 5
"""Results of one code that are watched for clocks and chance too."""


class Job(Wire):
    """What to do."""

    target: str
    params: Mapping[str, Any] = Field(default_factory=dict)
    backwards: bool = False
    watch: bool = True
    case_limit_s: Annotated[float, Field(gt=0)] = CASE_LIMIT_S


class Happened(Wire):
    """What became of one case."""

    name: str
    group: str
    status: str
    """`answered`, `refused` (pydantic did not take the input), `raised`, `wrong` (no Result) or `slow`."""
    problem: str = ""
    traceback: str = ""
    """Of what the check raised."""
    digest: str = ""
    """Of the whole result."""
    result: str = ""
    """Outcome, code, score and tier."""
    outcome: str = ""
    code: str = ""
    limits: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    """What a learner would miss in the feedback."""
    leaks: tuple[str, ...] = ()
    mutated: str = ""


class Report(Wire):
    """What a trial says."""

    happened: tuple[Happened, ...]
    impure: tuple[str, ...]


class _TooSlow(BaseException):
    """No `Exception`, so that a check does not swallow it."""


def main() -> None:
    """Does the job; prints nothing."""
    job = Job.model_validate_json(Path(sys.argv[1]).read_text())
    out = Path(sys.argv[2])
    with Path(os.devnull).open("w") as quiet, contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        report = run(job)
    out.write_text(report.model_dump_json())


def run(job: Job) -> Report:
    """Judges every case, each twice in a row."""
    target = load_target(job.target)
    recorded = read_recorded(target)
    cases = [*all_cases(target, recorded, job.params), *_hidden(target, recorded, job.params)]
    if job.backwards:
        cases.reverse()
    watch = Watch((*target.folders, source_of(target.loaded).parent)) if job.watch else None
    trial = _Trial(target, watch, job.case_limit_s)
    happened: list[Happened] = []
    signal.signal(signal.SIGALRM, _stop)
    for case in cases:
        happened.append(trial.of(case))
        if sum(one.status == "slow" for one in happened) >= MAX_SLOW:
            break
    if job.backwards:
        happened.reverse()
    return Report(happened=tuple(happened), impure=tuple(watch.seen) if watch is not None else ())


def _hidden(target: Target, recorded: tuple[Recorded, ...], params: Mapping[str, Any]) -> Iterator[Case]:
    """The cases again, with a mark in each parameter that is hidden from learners."""
    for name, value, mark in hidden_variants(target.loaded.check.params_model, params):
        for case in all_cases(target, recorded, params):
            if case.group in ("recorded", "generated"):
                changed = {**case.params, name: value}
                yield Case(f"{name}={mark}: {case.name}", "hidden", case.kind, case.value, changed)


class _Trial:
    """Judges cases one by one, each twice."""

    def __init__(self, target: Target, watch: Watch | None, limit_s: float) -> None:
        self._target = target
        self._watch = watch
        self._limit_s = limit_s
        self._seen: Counter[str] = Counter()

    def of(self, case: Case) -> Happened:
        """What becomes of one case."""
        try:
            value, params = _taken(self._target, case)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            return _unanswered(case, "refused", problem[:500])
        before = _dumped(value, params)
        result = self._answer(case, value, params, again=False, closely=False)
        if isinstance(result, Happened):
            return result
        self._seen[result.code] += 1
        closely = self._seen[result.code] <= _CLOSELY
        second = self._answer(case, value, params, again=True, closely=closely)
        if isinstance(second, Happened):
            return second
        changed = "it changed what it was given" if _dumped(value, params) != before else ""
        if _whole(result) != _whole(second):
            changed = changed or "it answered differently the second time"
        return _described(self._target, case, result, changed)

    def _answer(
        self, case: Case, value: BaseModel, params: BaseModel, *, again: bool, closely: bool
    ) -> Result | Happened:
        check = self._target.loaded.check
        watch = self._watch
        watching = watch.on(strict=again, closely=closely) if watch is not None else contextlib.nullcontext()
        signal.setitimer(signal.ITIMER_REAL, self._limit_s)
        try:
            with watching:
                if isinstance(value, Evidence):
                    return check.answer(value, params).result
                return check.decide(value, params)
        except _TooSlow:
            return _unanswered(case, "slow", f"it was not done within {self._limit_s:g} s")
        except BaseException as error:  # noqa: BLE001 - whatever the author's code raises is to be reported
            told = raised(error)
            return _unanswered(case, "raised", told.text, told.traceback)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _unanswered(case: Case, status: str, problem: str, traceback: str = "") -> Happened:
    return Happened(name=case.name, group=case.group, status=status, problem=problem, traceback=traceback)


def _described(target: Target, case: Case, result: Result, changed: str) -> Happened:
    shown = told(result)
    found = leaks(shown, (*target.folders, source_of(target.loaded).parent))
    if case.group == "hidden":
        name, _, mark = case.name.partition(":")[0].partition("=")
        found += [f"the hidden parameter {name}"] if shows(shown, mark) else []
    tier = result.tier.value if result.tier is not None else "-"
    score = "null" if result.score is None else f"{result.score:.6g}"
    return Happened(
        name=case.name,
        group=case.group,
        status="answered",
        digest=hashlib.sha256(_whole(result).encode()).hexdigest(),
        result=f"{result.outcome.value} {result.code} {score} {tier}",
        outcome=result.outcome.value,
        code=result.code,
        limits=tuple(problems_of(result)),
        lacks=tuple(lacks_of(result, usual=case.group in ("recorded", "missing"))),
        leaks=tuple(found),
        mutated=changed,
    )


def _taken(target: Target, case: Case) -> tuple[BaseModel, BaseModel]:
    params = target.loaded.parse_params(case.params)
    model = Evidence if case.kind == "evidence" else target.loaded.check.observation_model
    return model.model_validate_json(json.dumps(case.value)), params


def _stop(*_: object) -> None:
    raise _TooSlow


def _dumped(*values: BaseModel) -> str:
    return "".join(value.model_dump_json() for value in values)


def _whole(result: Result) -> str:
    return json.dumps(result.model_dump(mode="json", fallback=str), sort_keys=False, ensure_ascii=True)


if __name__ == "__main__":
    main()
