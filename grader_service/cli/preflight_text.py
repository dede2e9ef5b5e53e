"""A preflight on a terminal. Text that came from a learner is shown as text, never as markup."""

from rich.console import Console
from rich.text import Text

from grader_service.cli.output import table_of
from grader_service.cli.render import show_run, show_told, show_verdict
from grader_service.model.preflight import NamePart, Part, Preflight, Presence
from grader_service.model.verdict import Verdict

EXIT_CODES = {True: 0, False: 1, None: 4}
"""By `Preflight.ready`."""
_MARKS = {
    Presence.OK: ("✓", "green"),
    Presence.MISSING: ("✗", "red"),
    Presence.WRONG: ("✗", "red"),
    Presence.NOT_REACHED: ("–", "bright_black"),
}
_OPTIONAL = ("·", "bright_black")
_HEADINGS = {True: ("READY", "green"), False: ("NOT READY", "red"), None: ("NEEDS A GPU", "yellow")}


def show_answer(console: Console, verdict: Verdict, *, for_staff: bool = False) -> None:
    """A verdict, or the preflight in its place."""
    if verdict.preflight is None:
        show_verdict(console, verdict, for_staff=for_staff)
    else:
        show_preflight(console, verdict.preflight)


def show_preflight(console: Console, found: Preflight) -> None:
    """What stopped the run if anything did, then all that was looked for; of what is not as it should be what to do."""
    if found.run.stopped:
        show_run(console, found.run)
    words, colour = _HEADINGS[found.ready]
    line = Text(words, style=f"bold {colour}")
    line.append(f"   {found.lab_title}   ", style="default")
    line.append("preflight: nothing was measured or graded", style="italic")
    console.print(line)
    console.print()
    table = table_of("", "name", "what is there", "step")
    for name in found.names:
        table.add_row(_mark(name), Text(name.wanted.name), Text(_short(name)), ", ".join(name.wanted.steps))
    console.print(table)
    console.print()
    for part in found.parts:
        _show_part(console, part)


def _short(part: NamePart) -> str:
    if part.state is Presence.MISSING:
        return "not found; nothing fails without it" if part.wanted.optional else "not found"
    if part.state is Presence.OK:
        return part.told.seen or "there"
    return part.told.outcome


def _mark(part: Part) -> Text:
    mark, colour = _MARKS[part.state]
    if isinstance(part, NamePart) and part.wanted.optional and part.state is not Presence.OK:
        mark, colour = _OPTIONAL
    return Text(mark, style=colour)


def _show_part(console: Console, part: Part) -> None:
    """A name stands in the table already, unless something is to be done about it."""
    quiet = part.state in {Presence.OK, Presence.NOT_REACHED}
    if isinstance(part, NamePart) and (quiet or part.wanted.optional):
        return
    good = part.state is Presence.OK
    line = _mark(part)
    line.append(f" {part.told.outcome}", style="default" if good else "bold default")
    show_told(console, line, part.told, dim=good)
