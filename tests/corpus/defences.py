"""Switches defences off, one at a time, in a copy of the source, and shows that their cheats then pass.

    python -m tests.corpus.defences [--only ID,…] [--most N] [--lanes 2] [--report build/corpus]

A defence is an entry of a file in `defences.d/`: where it stands, the text that makes it work, what that text becomes
when it is off, and the cases that nothing else stops. A cheat that fails all the same proves nothing, so it makes this
red; so does an entry whose text is no longer there. Nothing of this is in what is shipped: a build with a defence off
is a folder that goes away.
"""

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tests.corpus.catalogue import selected
from tests.corpus.result import Finding, shortened

ROOT = Path(__file__).resolve().parents[2]
_CARRIED = ("grader_service", "sandbox", "checks", "images", "tests", "examples")
_SECONDS_FOR_START = 60.0
_PLAYS = 3
_MINUTES_ALONE = 3.0


class Edit(BaseModel):
    """One change of the source."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    file: str
    find: str
    """Stands exactly once in the file."""
    replace: str


class Defence(BaseModel):
    """One defence, and how it is switched off."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    id: str = Field(pattern=r"^[a-z0-9-]+$")
    title: str
    """What it does, in a sentence."""
    edits: tuple[Edit, ...] = Field(min_length=1)
    cases: tuple[str, ...] = Field(min_length=1)
    """Ids of cases that pass, or whose attack gets what it wants, when this is off."""


class Shown(Enum):
    """Whether the cheats of a defence pass without it."""

    YES = "yes"
    NO = "NO"
    """Something else stopped one."""
    UNDECIDED = "left open"
    """What is missing was measured, and the host was too noisy to decide it for or against the cheat."""


class NoAnswer(RuntimeError):
    """A build without a defence did not come to an end."""


class StaleDefence(ValueError):
    """An entry does not fit the source."""


def defences() -> tuple[Defence, ...]:
    """All of them, by id.

    Raises:
        ValueError: an entry is wrong, or an id stands twice.
    """
    found: dict[str, Defence] = {}
    for path in sorted((Path(__file__).parent / "defences.d").glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["defence"]:
            defence = Defence.model_validate(entry)
            if defence.id in found:
                raise ValueError(f"{path.name}: the defence {defence.id} is there twice")
            found[defence.id] = defence
    return tuple(found[one] for one in sorted(found))


def switched_off(defence: Defence, root: Path) -> dict[Path, str]:
    """Path → text of the files below `root` without the defence.

    Raises:
        StaleDefence: a text to replace is not there exactly once.
    """
    texts: dict[Path, str] = {}
    for edit in defence.edits:
        path = root / edit.file
        if not path.is_file():
            raise StaleDefence(f"{defence.id}: there is no file {edit.file}")
        text = texts.get(path) or path.read_text()
        times = text.count(edit.find)
        if times != 1:
            raise StaleDefence(
                f"{defence.id}: its text stands {times} times in {edit.file}, expected once: {edit.find!r}"
            )
        texts[path] = text.replace(edit.find, edit.replace)
    return texts


def try_without(defence: Defence, scratch: Path) -> tuple[Shown, str]:
    """Plays its cases in a build without it: whether each of them passed, and what came.

    A case that did not pass is played again, `_PLAYS` times at most: what a measurement leaves open on a busy machine
    it may decide the next time, and a cheat that passes once without the defence is what the defence is there for.
    """
    build = scratch / defence.id
    for name in _CARRIED:
        shutil.copytree(
            ROOT / name, build / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"), copy_function=os.link
        )
    results: dict[str, dict[str, Any]] = {}
    wanted = defence.cases
    try:
        for path, text in switched_off(defence, build).items():
            path.unlink()  # a hard link: the source itself stays as it is
            path.write_text(text)
        for play in range(1, _PLAYS + 1):
            try:
                played = _played(build, wanted)
            except NoAnswer:
                if play == _PLAYS:
                    raise
                continue
            results |= {one: {**result, "play": play} for one, result in played.items()}
            wanted = tuple(
                one for one in defence.cases if one not in results or results[one]["finding"] != Finding.FALSE_ACCEPT
            )
            if not wanted:
                break
    except (StaleDefence, NoAnswer) as error:
        return Shown.NO, str(error)
    finally:
        shutil.rmtree(build, ignore_errors=True)
    told = ", ".join(
        f"{one}: {result['outcome']} {result['code']}{_at_play(result['play'])}" for one, result in results.items()
    )
    why = "".join(f"\n    {one}: {shortened(results[one]['detail'])}" for one in wanted)
    if wanted and all(results[one]["outcome"] == "inconclusive" for one in wanted):
        return Shown.UNDECIDED, told + why
    return Shown.NO if wanted else Shown.YES, told + why


def _played(build: Path, cases: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Results of these cases in that build.

    Raises:
        NoAnswer: none came.
    """
    answers = build / "results.json"
    answers.unlink(missing_ok=True)
    limit_s = _SECONDS_FOR_START + 2 * sum(case.deadline_s for case in selected(cases))  # each may be played twice
    command = [sys.executable, "-m", "tests.corpus", "--lanes", "1", "--only", ",".join(cases)]
    try:
        done = subprocess.run(
            [*command, "--results", str(answers)],
            cwd=build,
            env={**os.environ, "PYTHONPATH": str(build), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"no answer within {limit_s:.0f} s") from None
    if not answers.is_file():
        raise NoAnswer(f"exit {done.returncode}: {done.stderr[-800:]}")
    return {result["id"]: result for result in json.loads(answers.read_text())}


def _at_play(number: int) -> str:
    return f" (play {number})" if number > 1 else ""


def try_all(
    chosen: Sequence[Defence], lanes: int, minutes: float | None = None, seed: str = ""
) -> Iterator[tuple[Defence, Shown, str, float]]:
    """Each as it comes, `lanes` beside each other, those with the most cases first.

    One that was not shown beside others is tried once more when they have ended, alone: a measurement that a busy
    machine keeps from deciding says nothing about the defence.

    With `minutes` they begin in an order that `seed` gives, and none begins later than that: over many commits each has
    its turn, and the same commit is tried in the same order again.
    """
    until = math.inf if minutes is None else time.monotonic() + 60 * minutes
    doubtful: list[tuple[Defence, Shown, str, float]] = []

    def one(defence: Defence) -> tuple[Defence, Shown, str, float] | None:
        started = time.monotonic()
        if started > until:
            return None
        shown, told = try_without(defence, Path(scratch))
        return defence, shown, told, time.monotonic() - started

    # Beside the source, so that its files can be linked there.
    folder = tempfile.TemporaryDirectory(prefix="corpus-without-", dir=ROOT / "build")
    with folder as scratch, ThreadPoolExecutor(lanes) as pool:
        ordered = sorted(chosen, key=lambda defence: -len(defence.cases))
        if minutes is not None:
            random.Random(seed).shuffle(ordered)
        for done in as_completed([pool.submit(one, defence) for defence in ordered]):
            if (result := done.result()) is None:
                continue
            if result[1] is Shown.YES or lanes == 1:
                yield result
            else:
                print(f"not shown beside others, to be tried alone: {result[0].id}: {result[2]}", flush=True)
                doubtful.append(result)
        for defence, _, _, seconds in doubtful:
            if time.monotonic() > until + 60 * _MINUTES_ALONE:
                print(f"left open, for the time was up: {defence.id}", flush=True)
                continue
            started = time.monotonic()
            shown, told = try_without(defence, Path(scratch))
            yield defence, shown, f"alone, {told}", seconds + time.monotonic() - started


def _commit() -> str:
    """The one that is checked out; nothing where this is no repository."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def main() -> int:
    """Prints a line for each; 1 when a cheat did not pass without its defence.

    What a noisy host leaves open is said, and is a failure only where all are tried (without `--minutes`).
    """
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.defences")
    parser.add_argument("--only", default="")
    parser.add_argument("--most", type=int, help="Cases for each defence; all of them without it.")
    parser.add_argument("--minutes", type=float, help="Begin none later than this; those left out are counted.")
    parser.add_argument("--seed", help="Of the order with --minutes; the commit without it.")
    parser.add_argument("--lanes", type=int, default=min(os.cpu_count() or 1, 4))
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "corpus")
    options = parser.parse_args()
    options.report.mkdir(parents=True, exist_ok=True)
    wanted = {part for part in options.only.split(",") if part}
    chosen = [
        defence.model_copy(update={"cases": defence.cases[: options.most]})
        for defence in defences()
        if not wanted or defence.id in wanted
    ]
    lines = []
    found: Counter[Shown] = Counter()
    not_shown = []
    seed = options.seed or _commit()
    if options.minutes is not None:
        print(f"in the order of --seed {seed}", flush=True)
    tried = try_all(chosen, options.lanes, options.minutes, seed)
    for number, (defence, shown, told, seconds) in enumerate(tried, 1):
        found[shown] += 1
        label = {Shown.YES: "", Shown.NO: "NOT SHOWN: ", Shown.UNDECIDED: "LEFT OPEN: "}[shown]
        if label:
            not_shown.append(f"{label}{defence.id}: {told}")
        print(f"[{number}/{len(chosen)}] without {defence.id}: {label}{told} ({seconds:.0f} s)", flush=True)
        lines.append(f"| {defence.title} (`{defence.id}`) | {', '.join(defence.cases)} | {shown.value} |")
    table = "\n".join(["| defence | switched off, these pass | shown |", "| --- | --- | --- |", *sorted(lines)])
    (options.report / "defences.md").write_text(table + "\n")
    print(f"\n{table}\n\n{found[Shown.YES]} of {len(lines)} defences: without them their cheats pass")
    if len(lines) < len(chosen):
        print(f"{len(chosen) - len(lines)} were not tried or left open, for the time was up; `make corpus` tries all")
    print(
        "\n".join(not_shown), end="\n" if not_shown else "", flush=True
    )  # last, where a log that was cut still has it
    open_too = found[Shown.UNDECIDED] if options.minutes is None else 0
    return 1 if found[Shown.NO] or open_too or not chosen else 0


if __name__ == "__main__":
    raise SystemExit(main())
