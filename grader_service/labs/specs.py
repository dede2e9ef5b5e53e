"""Reads lab specifications; knows no check, so that what runs submissions can use it."""

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

from grader_service.errors import ConfigurationError
from grader_service.labs.discovery import LabText, installed
from grader_service.labs.documents import Document, Form, read_document
from grader_service.labs.form import form_of
from grader_service.labs.mistakes import Mistake, error_at
from grader_service.model.lab import LabSpec

_MOST_LINES = 50


def lab_ids() -> list[str]:
    """Ids of the labs that are installed: those of the grader first."""
    return installed().ids()


def lab_text(lab_id: str) -> LabText:
    """The specification of one lab as it is written.

    Raises:
        UsageError: there is no such lab.
        ConfigurationError: its declaration or its file is wrong.
    """
    return installed().text(lab_id)


def grader_lab() -> LabSpec:
    """The first of the grader's own labs, for what any lab would do for: its image, and a run that looks at a GPU."""
    return read_lab(installed().grader_text(), "lab")


@lru_cache(maxsize=64)
def read_lab(text: LabText | str, name: str) -> LabSpec:
    """Parses one specification, once for the same text; its checks are not looked at. Text without a file is TOML.

    Raises:
        ConfigurationError: every mistake that was found, one per line.
    """
    lab, _, mistakes = opened(text)
    if lab is None:
        raise ConfigurationError(refusal(name, text, mistakes))
    return lab


def opened(text: LabText | str) -> tuple[LabSpec | None, Document | None, tuple[Mistake, ...]]:
    """A specification as far as it can be understood without its checks, and what is wrong with it."""
    content, form = (text.encode(), Form.TOML) if isinstance(text, str) else (text.content, text.form)
    document = read_document(content, form)
    if isinstance(document, tuple):
        return None, None, document
    lab = form_of(document)
    if isinstance(lab, tuple):
        return None, document, lab
    if isinstance(text, LabText) and text.id not in {None, lab.id}:
        message = f'the lab is installed as "{text.id}", and its file says "{lab.id}"'
        return None, document, (error_at(document.places.of_value(("id",)), "id.differs", message, ("id",)),)
    return lab, document, ()


def refusal(name: str, text: LabText | str, mistakes: Iterable[Mistake]) -> str:
    """Why a lab cannot be graded, one mistake per line, with the distribution that has to mend it."""
    file, origin = ("", "") if isinstance(text, str) else (text.name, f" (of {text.origin})")
    lines = [f"  {mistake.text(file or 'line')}" for mistake in islice(mistakes, _MOST_LINES)]
    return f"{name}{origin} is not a valid lab specification:\n" + "\n".join(lines)
