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
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tests.corpus.result import Finding, shortened

ROOT = Path(__file__).resolve().parents[2]
_CARRIED = ("grader_service", "sandbox", "checks", "images", "tests", "examples")
_SECONDS_PER_CASE = 120
_PLAYS = 3
_MINUTES_ALONE = 6.0


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


def try_without(defence: Defence, scratch: Path) -> tuple[bool, str]:
    """Plays its cases in a build without it: (whether each of them passed, what came).

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
            results |= {one: {**result, "play": play} for one, result in _played(build, wanted).items()}
            wanted = tuple(one for one in defence.cases if results[one]["finding"] != Finding.FALSE_ACCEPT)
            if not wanted:
                break
    except (StaleDefence, NoAnswer) as error:
        return False, str(error)
    finally:
        shutil.rmtree(build, ignore_errors=True)
    told = ", ".join(
        f"{one}: {result['outcome']} {result['code']}{_at_play(result['play'])}" for one, result in results.items()
    )
    why = "".join(f"\n    {one}: {shortened(results[one]['detail'])}" for one in wanted)
    return not wanted, told + why


def _played(build: Path, cases: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Results of these cases in that build.

    Raises:
        NoAnswer: none came.
    """
    answers = build / "results.json"
    answers.unlink(missing_ok=True)
    limit_s = _SECONDS_PER_CASE * (1 + len(cases))
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
        raise NoAnswer(f"no answer within {limit_s} s") from None
    if not answers.is_file():
        raise NoAnswer(f"exit {done.returncode}: {done.stderr[-800:]}")
    return {result["id"]: result for result in json.loads(answers.read_text())}


def _at_play(number: int) -> str:
    return f" (play {number})" if number > 1 else ""


def try_all(
    chosen: Sequence[Defence], lanes: int, minutes: float | None = None
) -> Iterator[tuple[Defence, bool, str, float]]:
    """Each as it comes, `lanes` beside each other, those with the most cases first.

    One that was not shown beside others is tried once more when they have ended, alone: a measurement that a busy
    machine keeps from deciding says nothing about the defence.

    With `minutes` they begin in an order of chance, and none begins later than that: over many runs each has its turn.
    """
    until = math.inf if minutes is None else time.monotonic() + 60 * minutes
    doubtful: list[tuple[Defence, bool, str, float]] = []

    def one(defence: Defence) -> tuple[Defence, bool, str, float] | None:
        started = time.monotonic()
        if started > until:
            return None
        good, told = try_without(defence, Path(scratch))
        return defence, good, told, time.monotonic() - started

    # Beside the source, so that its files can be linked there.
    folder = tempfile.TemporaryDirectory(prefix="corpus-without-", dir=ROOT / "build")
    with folder as scratch, ThreadPoolExecutor(lanes) as pool:
        ordered = sorted(chosen, key=lambda defence: -len(defence.cases))
        if minutes is not None:
            random.shuffle(ordered)
        for done in as_completed([pool.submit(one, defence) for defence in ordered]):
            if (result := done.result()) is None:
                continue
            if result[1] or lanes == 1:
                yield result
            else:
                print(f"not shown beside others, to be tried alone: {result[0].id}: {result[2]}", flush=True)
                doubtful.append(result)
        for defence, good, told, seconds in doubtful:
            if time.monotonic() > until + 60 * _MINUTES_ALONE:
                yield defence, good, told, seconds
                continue
            started = time.monotonic()
            good_alone, told_alone = try_without(defence, Path(scratch))
            yield defence, good_alone, f"alone, {told_alone}", seconds + time.monotonic() - started


def main() -> int:
    """Prints a line for each; 1 when a cheat did not pass without its defence."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.defences")
    parser.add_argument("--only", default="")
    parser.add_argument("--most", type=int, help="Cases for each defence; all of them without it.")
    parser.add_argument("--minutes", type=float, help="Begin none later than this; those left out are counted.")
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
    not_shown = []
    for number, (defence, good, told, seconds) in enumerate(try_all(chosen, options.lanes, options.minutes), 1):
        if not good:
            not_shown.append(f"NOT SHOWN: {defence.id}: {told}")
        print(
            f"[{number}/{len(chosen)}] without {defence.id}: {'' if good else 'NOT SHOWN: '}{told} ({seconds:.0f} s)",
            flush=True,
        )
        lines.append(f"| {defence.title} (`{defence.id}`) | {', '.join(defence.cases)} | {'yes' if good else 'NO'} |")
    table = "\n".join(["| defence | switched off, these pass | shown |", "| --- | --- | --- |", *sorted(lines)])
    (options.report / "defences.md").write_text(table + "\n")
    print(f"\n{table}\n\n{len(lines) - len(not_shown)} of {len(lines)} defences: without them their cheats pass")
    if len(lines) < len(chosen):
        print(f"{len(chosen) - len(lines)} were not tried, for the time was up; `make corpus` tries all")
    print(
        "\n".join(not_shown), end="\n" if not_shown else "", flush=True
    )  # last, where a log that was cut still has it
    return 1 if not_shown or not chosen else 0


if __name__ == "__main__":
    raise SystemExit(main())
