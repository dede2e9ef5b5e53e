"""What became of the run of a learner's code: the part of a verdict that stands above all checks."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from grader_service.model.base import Code, LongText, Seconds, ShortText, Wire
from grader_service.model.feedback import Sentence
from grader_service.model.place import Place


class RunEnding(StrEnum):
    """How the run ended."""

    COMPLETED = "completed"
    """The code ran from its first line to its last."""
    RAISED = "raised"
    """An exception, or `sys.exit`, ended it before."""
    TIMED_OUT = "timed_out"
    """It was still running when its time was up."""
    KILLED = "killed"
    """Its process ended or was ended: out of memory, a crash, or interference with the grader's connection."""
    STALLED = "stalled"
    """It neither used a processor nor wrote anything for long, and was ended before its time was up."""
    NOT_STARTED = "not_started"
    """No line of it ran, as for a syntax error."""


class RunException(Wire):
    """The exception that ended the run."""

    type: ShortText
    message: LongText


class RunReport(Wire):
    """What happened while the code ran, for the learner."""

    state: RunEnding
    code: Code
    """Stable reason, such as `run.syntax_error`."""
    outcome: Sentence
    """One sentence: what happened, and where."""
    place: Place | None = None
    """The learner's line where it happened, with the lines around it."""
    exception: RunException | None = None
    cause: Sentence = ""
    """The likely mistake, where it is known."""
    cause_place: Place | None = None
    """Where that is, if elsewhere."""
    remedy: Sentence = ""
    """What to do: begins with a verb."""
    output_tail: LongText = ""
    """What the code printed last."""
    traceback: LongText = ""
    """The learner's own lines, outermost first, as Python would show them; of libraries nothing."""
    seconds: Seconds | None = None
    """How long the code ran; null where that is not known."""
    limit_s: Annotated[float, Field(gt=0)] | None = None

    @property
    def stopped(self) -> bool:
        """Whether the code did not run to its end."""
        return self.state is not RunEnding.COMPLETED

    @property
    def further_cause(self) -> str:
        """The cause, where the outcome does not say it already."""
        return "" if self.cause in self.outcome else self.cause
