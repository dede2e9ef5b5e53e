"""The part of evidence that a verdict repeats."""

from pydantic import BaseModel, ConfigDict

from grader_service.model.evidence import RunRecord
from grader_service.model.measurement import Measurement


class Quoted(BaseModel):
    """What a verdict quotes of evidence; the rest of it is passed over, unread."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    run: RunRecord
    measurement: Measurement | None = None
