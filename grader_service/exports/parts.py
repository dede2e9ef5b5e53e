"""What a learner is told, in pieces that each format writes its own way; pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from markupsafe import Markup, escape

from grader_service.exports.text import plain
from grader_service.model.feedback import Feedback, Severity
from grader_service.model.place import Place
from grader_service.model.run_report import RunReport
from grader_service.report.formats import spans

_TODO = "What to do:"
_SIGNS = {Severity.WARNING: "Attention:", Severity.NOTE: "Worth knowing:"}


@dataclass(frozen=True)
class Piece:
    """One paragraph or one block of lines."""

    kind: Literal["outcome", "text", "action", "advice", "lines"]
    """`lines` keep their breaks and indentation, such as source and output."""
    text: str
    lead: str = ""
    """Words of ours in front."""


def of_check(told: Feedback) -> Iterator[Piece]:
    """A check's feedback: the outcome, what was seen and wanted, what to do, and advice."""
    yield Piece("outcome", told.outcome)
    yield Piece("text", told.observed)
    if told.next is not None:
        yield _source(told.next.place)
        yield Piece("action", told.next.text, _TODO)
        yield Piece("lines", told.next.code)
    for one in told.advice:
        where = f" ({one.place.where})" if one.place is not None else ""
        yield Piece("advice", one.told + where, _SIGNS[one.severity])


def of_run(run: RunReport) -> Iterator[Piece]:
    """How a run ended, where, why, and what to do."""
    yield Piece("outcome", run.outcome)
    yield _source(run.place)
    yield Piece("text", run.further_cause)
    yield _source(run.cause_place)
    yield Piece("action", run.remedy, _TODO)


def log_of(run: RunReport) -> Iterator[Piece]:
    """The traceback, and what was printed last."""
    yield Piece("lines", run.traceback)
    yield Piece("lines", run.output_tail, "The last that your code printed:" if run.output_tail else "")


def cut(pieces: Iterable[Piece], most: int) -> list[Piece]:
    """Those pieces that hold something, at most `most` characters together, each safe to show."""
    kept, left = [], most
    for piece in pieces:
        if not piece.text or left <= 0:
            continue
        text = plain(piece.text, left)
        left -= len(text)
        kept.append(replace(piece, text=text))
    return kept


def as_text(pieces: Iterable[Piece]) -> str:
    """Lines of plain text; blocks of lines are indented."""
    return "\n".join(_line(piece) for piece in pieces)


def as_html(pieces: Iterable[Piece]) -> str:
    """Paragraphs and preformatted blocks: every text is escaped, and what stands between backticks is code."""
    found = list(pieces)
    return "".join(_markup(piece, alone=len(found) == 1) for piece in found)


def _source(place: Place | None) -> Piece:
    """The line with those around it, as in an editor."""
    if place is None:
        return Piece("lines", "")
    shown = [f"{'>' if number == place.line else ' '} {number:>4} | {line}" for number, line in place.lines]
    return Piece("lines", "\n".join([place.where, *shown]))


def _line(piece: Piece) -> str:
    if piece.kind == "lines":
        lines = [*filter(None, (piece.lead,)), *(f"    {line}" for line in piece.text.splitlines())]
        return "\n".join(lines)
    return f"{piece.lead} {piece.text}".lstrip()


def _markup(piece: Piece, *, alone: bool) -> Markup:
    lead = Markup("<strong>{}</strong> ").format(piece.lead) if piece.lead else Markup()
    if piece.kind == "lines":
        before = Markup("<p>{}</p>").format(piece.lead) if piece.lead else Markup()
        return before + Markup("<pre>{}</pre>").format(piece.text)
    prose = Markup().join(
        Markup("<code>{}</code>").format(part) if code else escape(part).replace("\n", Markup("<br>"))
        for code, part in spans(piece.text)
    )
    if piece.kind == "outcome" and not alone:
        prose = Markup("<strong>{}</strong>").format(prose)
    return Markup("<p>{}{}</p>").format(lead, prose)
