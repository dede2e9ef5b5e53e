"""The conformance suite, as far as it needs no sandbox: everything about judging, decided from two trial processes."""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from checks.authoring import locking
from checks.authoring.limits import MOST_WORDS
from checks.authoring.material import Controls, Recorded, read_controls, read_recorded
from checks.authoring.report import Property, advice, examples, failed, kinds, passed, skipped
from checks.authoring.target import Target
from checks.authoring.trial import CASE_LIMIT_S, Happened, Job, Report
from checks.codes import outcomes_of
from grader_service.errors import ConfigurationError
from grader_service.model.verdict import NOT_REACHED

TRIAL_LIMIT_S = 300.0
_PROMISES = ("Points:", "Cannot detect:")


def examine(target: Target, *, accept: bool = False) -> list[Property]:
    """Looks at everything but the controls.

    Args:
        target: a check that loads.
        accept: writes what the recorded observations give now into the lock.

    Raises:
        ConfigurationError: the author's files beside the check are wrong.
        UsageError: `accept` for a check whose source is not kept here.
    """
    met = f"check API {target.loaded.check.api_version}, from {target.loaded.distribution}"
    found = [passed("loads", met), docstring(target), *probes(target)]
    recorded = read_recorded(target)
    _, controls = read_controls(target) or (None, Controls())
    problem = _params_problem(target, recorded, controls)
    if problem is not None:
        return [*found, problem]
    trials = _trials(target, controls.params)
    if isinstance(trials, Property):
        return [*found, trials]
    first, second = trials
    found += [
        pure(first),
        deterministic(first, second),
        answers(first, "missing"),
        answers(first, "hostile"),
        within_limits(first),
        can_be_acted_on(first),
        declared(target, first),
        leaks_nothing(first),
        as_recorded(first, recorded),
    ]
    if accept and any(one.status == "failed" for one in found):
        text = "nothing was accepted while other properties fail"
        return [*found, failed("version", text, "Mend them, then run `grader checks test --accept` again.")]
    return [*found, locking.compare(target, recorded, first, accept=accept)]


def docstring(target: Target) -> Property:
    """A judge says what it cannot see."""
    text = target.loaded.check.about
    lacking = [word for word in _PROMISES if word not in text]
    if not lacking:
        return passed("docstring", "says how points are given and what the check cannot detect")
    return advice(
        "docstring",
        f"the docstring lacks {' and '.join(lacking)}",
        "Say in the docstring of the check how points are given, and what passes although it should not.",
    )


def probes(target: Target) -> list[Property]:
    """Each probe that the check names is a probe."""
    wanted = target.loaded.check.probes
    problems = []
    read = []
    for probe_id in wanted:
        try:
            probe = target.probe(probe_id)
        except ConfigurationError as error:
            problems.append(str(error))
        else:
            read.append(f"{probe_id} {probe.version} (site {probe.site.value}, {probe.budget_s:g} s)")
    if problems:
        return [failed("probes", examples(problems), "Mend the probe's file, or its entry point in `grader.probes`.")]
    return [passed("probes", ", ".join(read))] if wanted else []


def pure(report: Report) -> Property:
    """Judging touches nothing outside its arguments."""
    changed = [f"{one.name}: {one.mutated}" for one in report.happened if one.mutated]
    if report.impure:
        return failed(
            "purity",
            f"while judging it {examples(report.impure)}",
            "Take all it needs from the observation and the parameters; what must be looked up belongs into a probe.",
        )
    if changed:
        return failed("purity", examples(changed), "Work on copies, and keep nothing from one judgement to the next.")
    return passed("purity", "no files, network, processes, clocks, chance or environment; arguments unchanged")


def deterministic(first: Report, second: Report) -> Property:
    """Another process with another hash seed, order, folder and time zone answers the same."""
    other = {one.name: one for one in second.happened}
    differing = [
        f"{one.name}: {_difference(one, other[one.name])}"
        for one in first.happened
        if one.name in other and (one.status, one.digest) != (other[one.name].status, other[one.name].digest)
    ]
    if differing:
        return failed(
            "determinism",
            f"two processes answered differently on {len(differing)} cases: {examples(differing)}",
            "Sort what comes from sets; keep out of the result what the machine, the time or the order decides.",
        )
    return passed("determinism", f"{len(first.happened)} cases, two processes, the same answers byte by byte")


def answers(report: Report, group: str) -> Property:
    """Whatever comes is answered by a result, or refused by a model."""
    groups = {"missing": ("missing",), "hostile": ("hostile", "generated", "hidden")}[group]
    cases = [one for one in report.happened if one.group in groups]
    unanswered = [one for one in cases if one.status not in ("answered", "refused")]
    bad = [(one.name, one.problem) for one in unanswered]
    what = {"missing": "parts missing from the evidence", "hostile": "hostile and generated values"}[group]
    if bad:
        todo = {
            "missing": "Answer with a Result where a part is not there: see `read_probe`, `not_reached` and `no_dali`.",
            "hostile": "Bound every field of the observation's model (ShortText, Count, max_length), and let the model "
            f"refuse what does not fit. One case may take {CASE_LIMIT_S:g} s.",
        }[group]
        text = f"{len(bad)} of {len(cases)} cases with {what} got no answer: {kinds(bad)}"
        return failed(group, text, todo, _first_traceback(unanswered))
    counted = Counter(one.status for one in cases)
    return passed(
        group,
        f"{len(cases)} cases with {what}: {counted['answered']} answered, {counted['refused']} refused by a model",
    )


def within_limits(report: Report) -> Property:
    """Results have the form that a verdict can carry."""
    bad = [(one.name, f"{one.code}: {problem}") for one in report.happened for problem in one.limits]
    codes = {one.code for one in report.happened if one.code}
    good = f"feedback, details, scores and codes have their form; {len(codes)} codes were seen"
    todo = "Use passed(), failed() and undecided(); keep details small, plain and finite."
    return failed("limits", kinds(bad), todo) if bad else passed("limits", good)


def can_be_acted_on(report: Report) -> Property:
    """What did not pass says what to do, and no feedback is longer than is read."""
    bad = [(one.name, f"{one.code} {lack}") for one in report.happened for lack in one.lacks]
    good = f"what did not pass says what to do next; at most {MOST_WORDS} words"
    todo = "Add next=…, and seen=… and wanted=… where they help: pages and exports show each part."
    return advice("feedback", kinds(bad), todo) if bad else passed("feedback", good)


def declared(target: Target, report: Report) -> Property:
    """Every answer has a code that the check declares, with an outcome that its meaning names."""
    try:
        codes = target.loaded.check.codes
    except TypeError as error:
        return failed("codes", str(error), "Name it; courses and platforms rely on codes.")
    if not codes:
        text = "the check does not say which codes it can answer with"
        return advice("codes", text, "Name each with its meaning in `codes`: platforms and courses rely on them.")
    bad = []
    for one in report.happened:
        if one.code == NOT_REACHED:
            continue  # the run's own word, which any check may pass on
        if one.code and one.code not in codes:
            bad.append((one.name, f"{one.code} is not in `codes`"))
        elif one.code and one.outcome not in (wanted := outcomes_of(one.code, codes[one.code])):
            bad.append((one.name, f"{one.code} came as {one.outcome}; its meaning says {' or '.join(sorted(wanted))}"))
    if bad:
        return failed("codes", kinds(bad), "Name every code in `codes`; a meaning begins with the outcome and a colon.")
    return passed("codes", f"{len(codes)} are declared, and every answer had one of them")


def leaks_nothing(report: Report) -> Property:
    """Feedback holds nothing that is for staff only."""
    bad = [(one.name, f"{one.code} shows {leak}") for one in report.happened for leak in one.leaks]
    if bad:
        return failed("leaks", kinds(bad), "Put it into `details`, which only staff read.")
    hidden = sorted({one.name.partition("=")[0] for one in report.happened if one.group == "hidden"})
    marked = f"; hidden parameters {', '.join(hidden)} included" if hidden else ""
    return passed("leaks", f"feedback shows no seed, log, host, path or held-out file{marked}")


def as_recorded(report: Report, recorded: tuple[Recorded, ...]) -> Property:
    """Recorded observations give their known results."""
    if not recorded:
        return skipped(
            "observations",
            "there is no observations.jsonl beside the check",
            "Record at least one observation for each code, with the result that it has to give.",
        )
    seen = {one.name: one for one in report.happened if one.group == "recorded"}
    bad = []
    for line in recorded:
        one = seen.get(line.name)
        came = (
            "nothing" if one is None else f"{one.outcome} {one.code}" if one.outcome else f"{one.status}: {one.problem}"
        )
        wanted = f"{line.expect.outcome.value} {line.expect.code}"
        if came != wanted:
            bad.append(f"{line.name}: expected {wanted}, got {came}")
    if bad:
        todo = "Mend the check, or what observations.jsonl expects of it."
        return failed("observations", examples(bad), todo, _first_traceback(seen.values()))
    outcomes = Counter(line.expect.outcome.value for line in recorded)
    return passed(
        "observations", f"{len(recorded)} recorded: " + ", ".join(f"{n} {word}" for word, n in outcomes.items())
    )


def _first_traceback(happened: Iterable[Happened]) -> str:
    return next((one.traceback for one in happened if one.traceback), "")


def _params_problem(target: Target, recorded: tuple[Recorded, ...], controls: Controls) -> Property | None:
    """Parameters that the check does not take would make every case a refusal."""
    own = controls.params
    tried: list[tuple[str, Mapping[str, Any]]] = [("controls.toml" if own else "the defaults", own)]
    tried += [(f"observations.jsonl, {line.name}", {**own, **line.params}) for line in recorded]
    tried += [(f"control {control.file}", {**own, **control.params}) for control in controls.control]
    for where, params in tried:
        try:
            target.loaded.parse_params(params)
        except ValidationError as error:
            text = f"{where}: {target.loaded.told(error)[0]}"
            todo = (
                "Give every parameter a default, or set `params` at the top of controls/controls.toml."
                if where == "the defaults"
                else "Change `params` there, or the check's parameters."
            )
            return failed("parameters", text, todo)
    return None


def _trials(target: Target, params: Mapping[str, Any]) -> tuple[Report, Report] | Property:
    """Both processes, at once; or what is wrong where one of them does not come to its end."""
    with tempfile.TemporaryDirectory(prefix="grader-trial-") as folder:
        running = [
            _start(Path(folder), Job(target=target.text, params=params, backwards=backwards, watch=not backwards))
            for backwards in (False, True)
        ]
        reports = []
        try:
            for process, result in running:
                _, errors = process.communicate(timeout=TRIAL_LIMIT_S)
                if process.returncode != 0 or not result.is_file():
                    last = errors.decode(errors="replace").strip().splitlines()[-1:] or [""]
                    text = f"the process in which it judged ended with {process.returncode}: {last[0][:500]}"
                    todo = "A check must not end, crash or block the process that it judges in."
                    return failed("judging", text, todo)
                reports.append(Report.model_validate_json(result.read_text()))
        except subprocess.TimeoutExpired:
            text = f"judging all cases took more than {TRIAL_LIMIT_S:g} s"
            return failed("judging", text, "Make `judge` faster.")
        finally:
            for process, _ in running:
                process.kill()
                process.communicate()
    return reports[0], reports[1]


def _start(folder: Path, job: Job) -> tuple["subprocess.Popen[bytes]", Path]:
    name = "second" if job.backwards else "first"
    order, result = folder / f"{name}.job.json", folder / f"{name}.json"
    order.write_text(job.model_dump_json())
    environment = {**os.environ, "PYTHONHASHSEED": "4711" if job.backwards else "1", "PYTHONDONTWRITEBYTECODE": "1"}
    if job.backwards:
        environment |= {"TZ": "Pacific/Apia", "LANG": "C", "HOME": str(folder), "USER": "somebody"}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "checks.authoring.trial", str(order), str(result)],
        cwd=folder if job.backwards else None,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    return process, result


def _difference(one: Happened, other: Happened) -> str:
    if one.status != other.status or one.result != other.result:
        return f"{one.result or one.status} and {other.result or other.status}"
    return "the same outcome with another text or other details"
