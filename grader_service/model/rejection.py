"""What is stored in the place of evidence when a submission could not be run at all."""

from typing import Literal

from pydantic import Field

from grader_service.model.base import Code, Device, Identifier, LongText, ShortText, Wire


class Rejection(Wire):
    """Why a submission could not be run at all; stored in the place of evidence."""

    schema_id: Literal["grader.rejection/v1"] = Field(default="grader.rejection/v1", alias="schema")
    run_id: Identifier
    device: Device
    sandbox: ShortText
    isolated: bool
    code: Code
    feedback: LongText
