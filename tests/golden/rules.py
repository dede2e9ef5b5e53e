"""What every page has to keep to, whatever it tells; each rule says what breaks it."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from grader_service.model.feedback import Feedback
from grader_service.model.verdict import CheckVerdict, Outcome, Verdict
from tests.golden.catalogue import Mistake
from tests.golden.pages import Page
from tests.golden.visible import Line

MOST_WORDS = 60
"""Of a block: what a check says, each piece of advice, and how the run ended."""
MOST_OF_A_PAGE = 120
"""Words of the median page on the terminal, without the learner's own source and output."""
_SENTENCE = 6
"""Words; what is shorter is a label, which may come again."""
_IMPERATIVES = (
    "add ask bring build call check choose copy correct count create cut decode define delete divide draw drop fill "
    "exchange give grade hand import increase install keep leave let look lower make measure mend move name normalise "
    "open pass print put raise read reduce remove rename replace resize return run save say send set show shuffle "
    "start stop take time try turn unpack use wait write"
)
_VERBS = frozenset(_IMPERATIVES.split())
_FIRST_WORD = re.compile(r"[A-Za-z]+")
_STOPS = re.compile(r"(?<=[.!?:])\s+")
_SIGNS = "✓✗≈?–!→·> "
_OURS = re.compile(
    r"grader_guest|notebook-cells|/var/tmp/grader|/tmp/grader|/runs/[0-9a-f]{8}|\bseed\b|\bheld[- ]out\b"
    r"|\bclean[- ]room\b|\btier [ABCD]\b|\bpods?\b|\bverdict_id\b|\bsandbox\b",
    re.IGNORECASE,
)
"""Our folders, and words for our insides that mean nothing to a learner."""
_ABOVE = re.compile(r"\babove (?:the )?(\d+(?:\.\d+)?) that is needed")
_BELOW = re.compile(r"\bbelow (?:the )?(\d+(?:\.\d+)?) that is needed")


def words(text: str) -> int:
    """How many there are: runs of signs between blanks that have a letter or a digit."""
    return sum(any(sign.isalnum() for sign in word) for word in text.split())


def page_words(page: Page) -> int:
    """Words of ours on the terminal."""
    return sum(words(line.text) for line in page.lines if not line.verbatim)


def broken(mistake: Mistake, page: Page) -> list[str]:
    """Everything that is wrong with a page, a line for each; empty for a good one."""
    verdict = page.verdict
    return [
        *_root_cause(mistake, page),
        *_long_blocks(verdict),
        *(f"terminal: {found}" for found in _twice(page.lines)),
        *(f"report: {found}" for found in _twice(page.report)),
        *_without_action(verdict),
        *(found for check in verdict.checks for found in contradictions(check)),
        *(f"terminal: {found}" for found in _ours(verdict, page.lines)),
        *(f"report: {found}" for found in _ours(verdict, page.report)),
    ]


def _root_cause(mistake: Mistake, page: Page) -> Iterator[str]:
    for word in mistake.first:
        if word not in page.first:
            yield f"the first line does not say {word!r}: {page.first}"
    said = "\n".join(line.text for line in page.lines)
    for word in mistake.says:
        if word not in said:
            yield f"the terminal does not say {word!r}"
    for word in (*mistake.first, *mistake.says):
        if not any(word.replace("`", "").lower() in line.text.lower() for line in page.report):
            yield f"the report does not say {word!r}"


def _long_blocks(verdict: Verdict) -> Iterator[str]:
    for where, text in blocks(verdict):
        if words(text) > MOST_WORDS:
            yield f"{where} has {words(text)} words, at most {MOST_WORDS} are read: {text}"


def blocks(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Where each block stands, and its text."""
    run = verdict.run
    if run is not None and run.stopped:
        yield "the run", f"{run.outcome} {run.further_cause} {run.remedy}"
    if not verdict.checks:
        yield "the verdict", verdict.feedback
    for check in verdict.checks:
        told = check.told
        action = () if told.next is None else (told.next.text, told.next.code)
        yield check.id, " ".join((told.outcome, told.seen, told.wanted, *action))
        for advice in told.advice:
            yield f"{check.id}, {advice.code}", f"{advice.text} {advice.next}"


def _twice(lines: Sequence[Line]) -> Iterator[str]:
    said = Counter(
        sentence.strip(_SIGNS)
        for line in lines
        if not line.verbatim
        for sentence in _STOPS.split(line.text)
        if words(sentence) >= _SENTENCE
    )
    for sentence, count in said.items():
        if count > 1:
            yield f"{count} times: {sentence}"


def _without_action(verdict: Verdict) -> Iterator[str]:
    run = verdict.run
    if run is not None and run.stopped and not run.remedy:
        yield f"the run says nothing to do: {run.outcome}"
    for check in verdict.checks:
        if check.outcome in {Outcome.PASSED, Outcome.SKIPPED}:
            continue
        told = check.told
        if told.next is None:
            yield f"{check.id} says nothing to do: {told.outcome}"
        elif not begins_with_a_verb(told.next.text):
            yield f"{check.id} has no verb at the beginning of what to do: {told.next.text}"


def begins_with_a_verb(text: str) -> bool:
    """Whether the first word is an imperative that these pages use."""
    found = _FIRST_WORD.match(text)
    return found is not None and found[0].lower() in _VERBS


def contradictions(check: CheckVerdict) -> Iterator[str]:
    """Verbs that the interval beside them denies, of a check that measured a ratio."""
    numbers, text = check.told.numbers, _whole(check.told)
    if not {"ratio", "low", "high", "needed"} <= set(numbers):
        return
    ratio, low, high, needed = (numbers[name] for name in ("ratio", "low", "high", "needed"))
    where = f"{check.id}: {ratio:.2f} ({low:.2f} to {high:.2f}), needed {needed:g}: "
    if not low <= ratio <= high:
        yield f"{where}the interval does not hold the ratio"
    if any(not low > float(found[1]) for found in _ABOVE.finditer(text)):
        yield f"{where}is said to be above"
    if any(not high < float(found[1]) for found in _BELOW.finditer(text)):
        yield f"{where}is said to be below"
    if "on both sides" in text and not low <= needed <= high:
        yield f"{where}is said to lie on both sides"
    if check.outcome is Outcome.PASSED and not low > needed:
        yield f"{where}passed"
    if check.outcome is Outcome.FAILED and not high <= needed:
        yield f"{where}failed"


def _ours(verdict: Verdict, lines: Sequence[Line]) -> Iterator[str]:
    run = verdict.run
    codes = {verdict.code, *(check.code for check in verdict.checks), *([run.code] if run is not None else [])}
    codes |= {advice.code for check in verdict.checks for advice in check.told.advice}
    for line in lines:
        if line.verbatim:
            continue
        found = [match[0] for match in _OURS.finditer(line.text)] + [code for code in codes if code in line.text]
        if found:
            yield f"names {', '.join(found)}: {line.text}"


def _whole(told: Feedback) -> str:
    return f"{told.outcome} {told.seen} {told.wanted}"
