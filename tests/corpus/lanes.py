"""Plays many cases beside each other: one process for each lane, each with a warm world of its own."""

import multiprocessing
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from grader_service.model.base import Device
from sandbox.docker.engine import connect_engine
from tests.corpus import catalogue
from tests.corpus.case import Case
from tests.corpus.result import Result, play
from tests.corpus.world import World

_world: World | None = None


def play_all(
    cases: Sequence[Case], *, lanes: int, sandbox: str = "docker", device: Device = "cpu", gpu: int = 0
) -> Iterator[Result]:
    """Results as they come, not in order. Leaving early ends the lanes."""
    if sandbox == "docker":
        connect_engine(30.0).close()  # a pool starts lanes that cannot begin again and again
    folder = Path(tempfile.mkdtemp(prefix="grader-corpus-", dir="/var/tmp"))
    make = partial(World, sandbox=sandbox, device=device, gpu=gpu)
    context = multiprocessing.get_context("spawn")
    try:
        with context.Pool(min(lanes, len(cases)) or 1, _open, (folder, make)) as pool:
            # Those that may take long start first, so that no lane waits for the other's last one.
            ordered = sorted(cases, key=lambda case: -case.deadline_s)
            yield from pool.imap_unordered(_play, [case.id for case in ordered])
            pool.close()
            pool.join()
    finally:
        for lane in folder.iterdir():
            make(lane).close()  # what a lane that was killed left behind goes too
        shutil.rmtree(folder, ignore_errors=True)


def _open(folder: Path, make: Callable[[Path], World]) -> None:
    global _world  # noqa: PLW0603 - a lane is a process, and has one world
    own = folder / multiprocessing.current_process().name
    own.mkdir()
    _world = make(own)


def _play(case_id: str) -> Result:
    assert _world is not None, "the lane was not opened"
    (case,) = [case for case in catalogue.cases() if case.id == case_id]
    return play(case, _world)
