"""Watches what built-in checks answer while other tests judge, and remembers codes that they do not declare."""

import functools
from typing import Any

from checks.api import Check, Result
from checks.codes import outcomes_of
from checks.registry import LoadedCheck, Registry
from grader_service.judging.process import JudgeProcess
from grader_service.model.verdict import NOT_REACHED

ADVICE_FAILED = "judge.failed"
"""The service's own word for advice that crashed in the judging process."""
_strangers: list[str] = []


@functools.cache
def built_in() -> list[LoadedCheck]:
    """The checks of this repository."""
    registry = Registry()
    loaded = [registry.load(check_id) for check_id in registry.ids()]
    return [one for one in loaded if one.distribution == "grader-service"]


def watch() -> None:
    """From now on every answer in this process, and every one that comes out of a judging process, is looked at."""
    if not hasattr(Check.whole, "__wrapped__"):
        Check.whole = _watched(Check.whole)
    if not hasattr(JudgeProcess.judge, "__wrapped__"):
        JudgeProcess.judge = _watched_process(JudgeProcess.judge)


def strangers() -> list[str]:
    """What was answered without being declared since this was asked last."""
    found = list(dict.fromkeys(_strangers))
    _strangers.clear()
    return found


def _watched(method: Any) -> Any:
    @functools.wraps(method)
    def watched(self: Any, *arguments: Any, **named: Any) -> Any:
        answer = method(self, *arguments, **named)
        if any(loaded.check is self for loaded in built_in()):
            _look(self, answer)
        return answer

    return watched


def _watched_process(method: Any) -> Any:
    checks = {loaded.check.id: loaded for loaded in built_in()}

    @functools.wraps(method)
    def watched(*arguments: Any, **named: Any) -> Any:
        judgement = method(*arguments, **named)
        for one in judgement.checks:
            own = checks.get(one.check.id)
            if own is not None and one.version_text == own.version_text and one.result.code != ADVICE_FAILED:
                _look(own.check, one.result)
        return judgement

    return watched


def _look(check: Any, answer: Result) -> None:
    if answer.code == NOT_REACHED:
        return  # the run's own word, which any check may pass on
    meaning = check.codes.get(answer.code)
    if meaning is None:
        _strangers.append(f"{check.id} answers {answer.code}, which is not in its `codes`")
    elif answer.outcome.value not in outcomes_of(answer.code, meaning):
        _strangers.append(f"{check.id} answers {answer.code} as {answer.outcome.value}; its `codes` say: {meaning}")
