"""What a platform is told while a submission is graded: schema `grader.progress/v1`."""

import json
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints

from grader_service.model.base import Identifier, Seconds, Wire, neutralise

MAX_LINE = 100
"""Characters of a printed line."""
MAX_BYTES = 1024
"""Of an event as JSON, with escapes for whatever is not ASCII."""
_MOST_LINE_BYTES = 500


def one_line(text: str) -> str:
    """A text in one line of at most `MAX_LINE` characters, safe to show."""
    line = neutralise(" ".join(text[: 16 * MAX_LINE].split()))
    if len(line) > MAX_LINE:
        line = f"{line[: MAX_LINE - 1]}…"
    while len(json.dumps(line)) > _MOST_LINE_BYTES:
        line = f"{line[:-2]}…"
    return line


class ProgressEvent(Wire):
    """How far the grading of one submission is. Events may be lost, and one may come after the verdict."""

    schema_id: Literal["grader.progress/v1"] = Field(default="grader.progress/v1", alias="schema")
    submission_id: Identifier
    run_id: Identifier
    stage: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,40}$")]
    """The stage's word in the verdict (`provenance.timings_s`), such as `learner` while the learner's code runs."""
    elapsed_s: Seconds
    """Seconds since the stage began."""
    limit_s: Seconds | None
    """Seconds after which the stage is ended by the service; null where none is set."""
    line: Annotated[str, StringConstraints(max_length=MAX_LINE), AfterValidator(one_line)]
    """What the learner's code printed last, in one line; empty where it printed nothing, and in other stages. It is a
    learner's text: escape it where it is shown."""
    at: AwareDatetime
    """By the runner's clock."""
