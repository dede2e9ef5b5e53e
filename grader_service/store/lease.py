"""What a worker holds while it works on a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from grader_service.store.tables import Purpose

Stage = Literal["run", "judge"]


@dataclass(frozen=True)
class Lease:
    """The right to work on a run, until it expires or another worker claims the run."""

    run_id: str
    submission_id: str
    stage: Stage
    fence: int
    owner: str
    attempts: int
    plan: Mapping[str, Any] = field(default_factory=dict)
    item_id: int | None = None
    """The item of a re-grade that the run serves."""
    cancelled: str | None = None
    """Why an operator cancelled it."""
    purpose: Purpose = "live"
