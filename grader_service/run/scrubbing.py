"""Gives our folders the names that a learner knows them by, in what a learner's process printed and raised."""

import re
from pathlib import PurePosixPath

from grader_service.model.discovery import Discovery
from grader_service.model.evidence import CleanRoom
from grader_service.model.measurement import Measurement
from sandbox.api import GuestPaths

_OURS = "(of the grader)"


class Scrubber:
    """For the folders of one run: a pod that is a plain process sees the host's."""

    def __init__(self, paths: GuestPaths) -> None:
        names = {
            paths.workspace: "/workspace",
            paths.submission: "/workspace",
            paths.tmp: "/tmp",  # noqa: S108 - a name that learners know
            paths.shm: "/dev/shm",  # noqa: S108 - the same
            paths.shards: _OURS,
            str(PurePosixPath(paths.shards).parent): _OURS,
        }
        longest_first = sorted(names.items(), key=lambda pair: -len(pair[0]))
        # A whole path only: a learner may have a folder `grader` or `workspace` anywhere.
        self._names = [
            (re.compile(rf"(?<![\w.\-/]){re.escape(path)}(?![\w\-])(?!\.\w)"), name) for path, name in longest_first
        ]

    def text(self, text: str) -> str:
        """The text with those names, and never longer than it was: fields of evidence have their limits."""
        whole = len(text)
        for path, name in self._names:
            text = path.sub(name, text)  # names hold no backslash
        return text[:whole]

    def room(self, room: CleanRoom | None) -> CleanRoom | None:
        """The same, with them in DALI's message and the factory's, which name lines of the learner's."""
        if room is None:
            return None
        told = {"problem_text": self.text(room.problem_text), "factory_problem": self.text(room.factory_problem)}
        return room.model_copy(update=told)

    def refused(self, measurement: Measurement | None) -> Measurement | None:
        """The same, in the reasons why a graph or code was not measured."""
        if measurement is None:
            return None
        told = tuple(one.model_copy(update={"text": self.text(one.text)}) for one in measurement.refused)
        return measurement.model_copy(update={"refused": told})

    def discovery(self, discovery: Discovery) -> Discovery:
        """The same, with them in its message and folders: for who reads it, once nobody works with its paths."""
        exception, folder = discovery.exception, discovery.dataset_dir
        if exception is not None:
            exception = exception.model_copy(update={"message": self.text(exception.message)})
        path = None if folder.path is None else self.text(folder.path)
        return discovery.model_copy(
            update={
                "exception": exception,
                "dataset_dir": folder.model_copy(update={"path": path, "shown": self.text(folder.shown)}),
                "loaders": tuple(
                    one.model_copy(update={"dataset_root": self.text(one.dataset_root)}) for one in discovery.loaders
                ),
                "pipelines": tuple(
                    one.model_copy(update={"reader_root": self.text(one.reader_root)}) for one in discovery.pipelines
                ),
                "names": tuple(one.model_copy(update={"shown": self.text(one.shown)}) for one in discovery.names),
            }
        )
