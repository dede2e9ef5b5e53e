"""The mistakes: what was handed in, what is wrong with it, and what has to come out."""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

FOLDER = Path(__file__).parent
SUBMISSIONS = FOLDER / "mistakes"
KEPT = FOLDER / "evidence"
LAB = "dali-pipelines"
CHECKS = {"baseline": "jpeg", "pipeline": "batch", "benchmark": "ratio", "reflection": "reflections"}
"""Step of the lab → first word of its check's codes."""
NOT_REACHED = "run.not_reached"
Result = tuple[str, str]
"""Outcome and code of a step's check."""


class Mistake(BaseModel):
    """One submission with one mistake, or an honest one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    mistake: str
    """In a sentence."""
    first: Annotated[tuple[str, ...], Field(min_length=1)]
    """Words of the root cause, all of which stand in the first line of the terminal's text."""
    says: tuple[str, ...] = ()
    """Words that stand anywhere on the page."""
    status: str
    code: str
    run: str = "run.completed"
    """Code of the run; empty where nothing was run."""
    steps: dict[str, str] = {}
    """Step → `passed`, `skipped`, or outcome and code such as `failed jpeg.too_few`; empty where nothing was judged."""
    limits: dict[str, int | float] = {}
    """Changes to the limits of a golden run."""
    leaves: tuple[str, ...] = ()
    """Folders that it writes outside of its own, which a pod without walls leaves behind."""

    @property
    def file(self) -> Path:
        """In `mistakes/`: the submission, or how it differs from another one."""
        (path,) = SUBMISSIONS.glob(f"{self.name}.*")
        return path

    @property
    def submission(self) -> bytes:
        """What was handed in."""
        return _changed(self.file.read_text()) if self.file.suffix == ".diff" else self.file.read_bytes()

    @property
    def filename(self) -> str:
        """The name that it was handed in under; what is kept as a diff is a script."""
        return f"submission{self.file.suffix.replace('.diff', '.py')}"

    @property
    def evidence(self) -> Path:
        """What a run left behind."""
        return KEPT / f"{self.name}.json"

    @property
    def terminal(self) -> Path:
        """The terminal's text, 100 columns wide."""
        return KEPT / f"{self.name}.txt"

    @property
    def report(self) -> Path:
        """The text of the learner's report."""
        return KEPT / f"{self.name}.report.txt"

    @property
    def results(self) -> dict[str, Result]:
        """What each step's check has to answer."""
        return {step: _result(step, said) for step, said in self.steps.items()}


def _changed(diff: str) -> bytes:
    """What `patch` makes of the file that a unified diff names first; the diff has no context (`diff -U0`)."""
    header, _, *lines = diff.splitlines(keepends=True)
    before = (SUBMISSIONS / header.removeprefix("--- ").strip()).read_text().splitlines(keepends=True)
    after: list[str] = []
    done = 0
    for line in lines:
        if found := re.match(r"@@ -(\d+)(,0)?", line):
            start = int(found[1]) - (found[2] is None)  # what only adds lines names the line before them
            after += before[done:start]
            done = start
        elif line.startswith("-"):
            assert before[done] == line[1:], f"{header.strip()} has another line {done + 1} than the diff: {line}"
            done += 1
        else:
            after.append(line[1:])
    return "".join([*after, *before[done:]]).encode()


def _result(step: str, said: str) -> Result:
    outcome, _, code = said.partition(" ")
    usual = {"passed": f"{CHECKS[step]}.ok", "skipped": NOT_REACHED}
    return outcome, code or usual[outcome]


@cache
def mistakes() -> dict[str, Mistake]:
    """All of them, by name, in the order of the file."""
    entries: dict[str, Any] = tomllib.loads((FOLDER / "mistakes.toml").read_text())
    return {name: Mistake.model_validate({"name": name, **entry}) for name, entry in entries.items()}


def chosen(names: list[str]) -> list[Mistake]:
    """Those with these names; all where none is named.

    Raises:
        ValueError: one of them is unknown.
    """
    unknown = sorted(set(names) - set(mistakes()))
    if unknown:
        raise ValueError(f"no mistake is called {', '.join(unknown)}; the names stand in {FOLDER / 'mistakes.toml'}")
    return [mistakes()[name] for name in names] or list(mistakes().values())
