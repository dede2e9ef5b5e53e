"""What a check or a run tells a learner, in parts that every format renders its own way."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints

from grader_service.model.base import MAX_LONG, Code, LongText, Wire, neutralise
from grader_service.model.place import Place

MAX_SENTENCE = 1000
"""Characters."""
Sentence = Annotated[str, StringConstraints(max_length=MAX_SENTENCE), AfterValidator(neutralise)]
Number = Annotated[int, Field(ge=-(2**53), le=2**53)] | float


class Severity(StrEnum):
    """How much a piece of advice matters."""

    NOTE = "note"
    """Worth knowing."""
    WARNING = "warning"
    """Probably a mistake, although nothing stopped and no points were lost by it."""


class NextStep(Wire):
    """What to do next."""

    text: Sentence
    """An action: begins with a verb."""
    place: Place | None = None
    """The learner's line that it is about."""
    code: LongText = ""
    """What to write there."""


class Advice(Wire):
    """Something beside the outcome."""

    code: Code
    """Stable reason, such as `advice.not_normalised`."""
    severity: Severity = Severity.WARNING
    text: Sentence
    next: Sentence = ""
    """An action, where there is one."""
    place: Place | None = None

    @property
    def told(self) -> str:
        """The text and the action."""
        return " ".join(filter(None, (self.text, self.next)))


class Feedback(Wire):
    """What was found, seen and wanted, and what to do next."""

    outcome: Sentence
    """One sentence."""
    seen: LongText = ""
    wanted: Sentence = ""
    next: NextStep | None = None
    advice: Annotated[tuple[Advice, ...], Field(max_length=64)] = ()
    numbers: Annotated[Mapping[str, Number], Field(max_length=32)] = Field(default_factory=dict)
    """Figures that the texts name, such as `images` and `needed`; units are in the name, as `images_per_s`."""

    @classmethod
    def of(cls, text: str) -> Self:
        """A text without parts: the outcome, and what is too long for it as what was seen."""
        if len(text) <= MAX_SENTENCE:
            return cls(outcome=text)
        cut = max(text.rfind(space, 1, MAX_SENTENCE + 1) for space in " \n")
        cut = MAX_SENTENCE if cut < 0 else cut
        return cls(outcome=text[:cut], seen=text[cut:].lstrip()[:MAX_LONG])

    @property
    def observed(self) -> str:
        """What was seen and what is wanted."""
        return " ".join(filter(None, (self.seen, self.wanted)))

    @property
    def text(self) -> str:
        """All of it as plain text: a paragraph, and one for each piece of advice."""
        first = [self.outcome, self.observed]
        if self.next is not None:
            first.append(self.next.text)
        lines = [" ".join(filter(None, first))]
        if self.next is not None and self.next.code:
            lines.append("\n".join(f"    {line}" for line in self.next.code.splitlines()))
        lines += [advice.told for advice in self.advice]
        return "\n".join(filter(None, lines))
