"""Switches defences off, one at a time, in a copy of the source, and shows that their cheats then pass.

    pytest tests/corpus/test_defences.py [-k ID]

A defence is an entry of a file in `defences.d/`: where it stands, the text that makes it work, what that text becomes
when it is off, and the cases that nothing else stops. A cheat that fails all the same proves nothing, so it makes this
red; so does an entry whose text is no longer there. Nothing of this is in what is shipped: a build with a defence off
is a folder that goes away.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tests.corpus.case import Case, Sandbox, sandbox_of
from tests.corpus.catalogue import selected
from tests.corpus.result import Finding, shortened

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "corpus" / "defences.d"
_CARRIED = ("grader_service", "sandbox", "checks", "images", "tests", "examples")
_SECONDS_FOR_START = 60.0
_PLAYS = 3


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
    for path in sorted(FOLDER.glob("*.toml")):
        for defence in defences_in(path):
            if defence.id in found:
                raise ValueError(f"{path.name}: the defence {defence.id} is there twice")
            found[defence.id] = defence
    return tuple(found[one] for one in sorted(found))


def defences_in(path: Path) -> tuple[Defence, ...]:
    """Those of one file."""
    return tuple(Defence.model_validate(entry) for entry in tomllib.loads(path.read_text())["defence"])


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


def play_without(defence: Defence) -> None:
    """Plays its cases in a build without it, in a folder beside the source, so that its files can be linked there.

    A case that did not pass is played again, `_PLAYS` times at most: what a measurement leaves open on a busy machine
    it may decide the next time, and a cheat that passes once without the defence is what the defence is there for.

    Raises:
        AssertionError: not each of them passed.
        StaleDefence: it does not fit the source.
        NoAnswer: the build came to no end.
    """
    (ROOT / "build").mkdir(exist_ok=True)
    results: dict[str, dict[str, Any]] = {}
    wanted = defence.cases
    with tempfile.TemporaryDirectory(prefix=f"corpus-without-{defence.id}-", dir=ROOT / "build") as folder:
        build = Path(folder)
        for name in _CARRIED:
            shutil.copytree(
                ROOT / name, build / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"), copy_function=os.link
            )
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
    told = ", ".join(
        f"{one}: {result['outcome']} {result['code']} (play {result['play']})" for one, result in results.items()
    )
    why = "".join(f"\n    {one}: {shortened(results[one]['detail'])}" for one in wanted)
    assert not wanted, told + why


def _played(build: Path, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Results of these cases in that build, each in the sandbox that it needs.

    Raises:
        NoAnswer: none came.
    """
    cases = sorted(selected(ids), key=sandbox_of)
    return {
        result["id"]: result
        for sandbox, part in itertools.groupby(cases, sandbox_of)
        for result in _answers(build, sandbox, tuple(part))
    }


def _answers(build: Path, sandbox: Sandbox, cases: Sequence[Case]) -> list[dict[str, Any]]:
    answers = build / "results.json"
    answers.unlink(missing_ok=True)
    limit_s = _SECONDS_FOR_START + 2 * sum(case.deadline_s for case in cases)  # each may be played twice
    command = [sys.executable, "-m", "tests.corpus", "--lanes", "1", "--sandbox", sandbox]
    command += ["--only", ",".join(case.id for case in cases)]
    try:
        done = subprocess.run(
            [*command, "--report", str(build)],
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
    return json.loads(answers.read_text())
