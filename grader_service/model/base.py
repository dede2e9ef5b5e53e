"""The base of every model and the bounded field types that they share."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

# Characters that change what a terminal or a page shows beside the text itself: C0/C1 controls except
# tab and newline, bidirectional overrides, and lone surrogates, which no UTF-8 stream can carry.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def neutralise(text: str) -> str:
    """Replaces each character that could move a cursor or reorder a line by U+FFFD; keeps the length."""
    if text.isascii() and text.isprintable():
        return text  # as most are, by the hundred in every document
    return _UNSAFE.sub("\ufffd", text)


class Wire(BaseModel):
    """An immutable value, read from JSON: arrays become tuples; unknown fields, NaN and infinities are errors."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class Frozen(Wire):
    """The same, of values that we make ourselves: no type is coerced."""

    model_config = ConfigDict(strict=True)


def first_problem(error: ValidationError) -> str:
    """What is wrong first with a document: place and reason, without what was there."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or '(top)'}: {first['msg']}"


_MOST_KEYS = 64


def _few(value: object) -> object:
    """Counted before keys are validated, each of which would leave a reason."""
    if isinstance(value, Mapping) and len(value) > _MOST_KEYS:
        raise ValueError(f"{len(value)} entries; expected at most {_MOST_KEYS}")
    return value


Few = BeforeValidator(_few)
"""For mappings that strangers fill: at most 64 entries."""

IDENTIFIER = re.compile(r"^[A-Za-z0-9._:-]{1,128}$")
Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER.pattern)]
"""An id of the platform or of ours: 1 to 128 of `A-Za-z0-9._:-`."""

Version = Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$", max_length=40)]
"""Three numbers with dots."""

Code = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$", max_length=80)]
"""A stable machine-readable reason: dotted lower-case words such as `jpeg.too_few`."""

ShortText = Annotated[str, StringConstraints(max_length=200), AfterValidator(neutralise)]
"""At most 200 characters, made safe to show."""

MAX_LONG = 8192
"""Characters."""
LongText = Annotated[str, StringConstraints(max_length=MAX_LONG), AfterValidator(neutralise)]
"""At most 8192 characters, made safe to show."""

Device = Literal["cuda", "cpu"]
"""Where batches lie and graphs run; `cpu` in a rehearsal."""
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=2**53)]
Seconds = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,60}$")]
"""A lower-case reason word."""
Dimension = Annotated[int, Field(ge=0, le=2**40)]
Shape = Annotated[tuple[Dimension, ...], Field(max_length=16, fail_fast=True)]

Details = Mapping[str, object]
