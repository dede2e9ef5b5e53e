"""Takes what is ours out of a learner's output and messages: our folders, and our lines of a traceback."""

import re
from pathlib import PurePosixPath

from grader_service.model.evidence import Discovery
from sandbox.api import GuestPaths

MOST_CHARACTERS = 4000
MOST_LINES = 40
_CELL = re.compile(r"(?:File )?\"?[^\s\"']*/notebook-cells/cell_0*(\d+)\.py\"?")
_OUR_FRAME = re.compile(r"^ +File \"[^\"\n]*/grader_guest/[^\"\n]*\", line \d+, in [^\n]*\n(?: {4}[^\n]*\n){0,3}", re.MULTILINE)
_OURS = "(of the grader)"


class Scrubber:
    """For the folders of one run."""

    def __init__(self, paths: GuestPaths) -> None:
        # A pod that is a plain process sees the host's own folders; in a container these are the names anyway.
        run = PurePosixPath(paths.submission).parent
        known = {
            paths.workspace: "/workspace",
            paths.submission: "/workspace",
            paths.tmp: "/tmp",  # noqa: S108 - a name that learners know
            paths.shm: "/dev/shm",  # noqa: S108 - the same
            paths.shards: _OURS,
            str(run): _OURS,
        }
        self._known = sorted(known.items(), key=lambda pair: -len(pair[0]))

    def text(self, text: str) -> str:
        """The text with the names that a learner knows."""
        text = _OUR_FRAME.sub("", text)
        text = _CELL.sub(lambda found: f"cell {found[1]}", text)
        for path, name in self._known:
            text = text.replace(path, name)
        return text

    def tail(self, output: str) -> str:
        """The last lines of what was printed."""
        lines = self.text(output).rstrip().splitlines()[-MOST_LINES:]
        return "\n".join(lines)[-MOST_CHARACTERS:]

    def discovery(self, discovery: Discovery) -> Discovery:
        """The same with a scrubbed message of the exception."""
        exception = discovery.exception
        if exception is None:
            return discovery
        told = exception.model_copy(update={"message": self.text(exception.message)})
        return discovery.model_copy(update={"exception": told})
