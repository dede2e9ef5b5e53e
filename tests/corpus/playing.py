"""Cases as tests: each is played once, and its result must be right."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.corpus.case import Case
from tests.corpus.result import Finding, play, shortened
from tests.corpus.world import World


@contextmanager
def opened(sandbox: str) -> Iterator[World]:
    """A world of this process, of which nothing is left afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="grader-corpus-", dir="/var/tmp"))
    world = World(folder, sandbox=sandbox)
    try:
        yield world
    finally:
        world.close()
        shutil.rmtree(folder, ignore_errors=True)


def check(case: Case, world: World) -> None:
    """Plays a case.

    Raises:
        AssertionError: its result is not right.
    """
    result = play(case, world)
    if result.again:
        print(f"played again after {result.again}")
    told = f"{result.finding.value}: {result.outcome} {result.code}, wanted {result.wanted}\n{shortened(result.detail)}"
    assert result.finding is Finding.RIGHT, told
