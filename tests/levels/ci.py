"""What CI runs beside `make test`, within a limit of time: what a change touches, and one shard of everything."""

from collections.abc import Callable, Iterator, Sequence

from tests.levels import levels
from tests.levels.parts import Part
from tests.levels.record import Record
from tests.levels.shards import divided, recorded
from tests.levels.touched import changed_files, commit_time, touched

LIMIT_S = 34 * 60.0
"""No part begins that would, by the recorded seconds, end later than this after the beginning. On a slow day one takes
two and a half times those; all together may take 40 minutes."""
CHUNK_S = 150.0
"""Units are run in chunks of about this length, so that the time is looked at between them."""
TOUCHED_SHARE = 0.5
"""Of the time that is left after `make test`, what touched units may take."""
LANES = 2.0
"""Recorded seconds are those of single tests; two run at once."""
_TURN_S = 3100
"""The shard changes this often with the time of the commit. It divides neither hours nor days: changes that come at
regular times reach all shards."""

Run = Callable[[Record, Sequence[Part]], None]


def more(record: Record, base: str | None, of: int, run: Run) -> None:
    """Runs both, and notes what was not begun for want of time.

    Args:
        record: of the run so far.
        base: the commit that the change is compared with; None for that of a day ago.
        of: number of shards.
        run: runs parts and notes what came of them.
    """
    units = levels.units()
    found = touched(changed_files(base), units)
    until = record.seconds + TOUCHED_SHARE * max(0.0, LIMIT_S - record.seconds)
    begun = _in_chunks(record, found, "touched", until, run)
    number = 1 + commit_time() // _TURN_S % of
    left = [unit for unit in divided(units, of, recorded())[number - 1] if unit not in begun]
    _in_chunks(record, left, f"shard {number} of {of}", LIMIT_S, run)


def _in_chunks(record: Record, units: Sequence[str], name: str, until_s: float, run: Run) -> set[str]:
    """Runs units while there is time for the next chunk of them; returns those that were begun."""
    seconds = recorded()
    begun: set[str] = set()
    chunks = list(chunked(units, seconds))
    for number, chunk in enumerate(chunks, 1):
        estimate = sum(seconds.get(unit, 1.0) for unit in chunk) / LANES
        if record.seconds + estimate > until_s:
            left = [unit for rest in chunks[number - 1 :] for unit in rest]
            record.not_begun.append(f"{name}: {len(left)} of {len(units)} units, for want of time: {', '.join(left)}")
            return begun
        begun |= set(chunk)
        run(record, levels.of_units(chunk, f"{name}, chunk {number} of {len(chunks)}"))
    return begun


def chunked(units: Sequence[str], seconds: dict[str, float]) -> Iterator[list[str]]:
    """The units in chunks of about `CHUNK_S`."""
    chunk: list[str] = []
    size = 0.0
    for unit in units:
        if chunk and size + seconds.get(unit, 1.0) / LANES > CHUNK_S:
            yield chunk
            chunk, size = [], 0.0
        chunk.append(unit)
        size += seconds.get(unit, 1.0) / LANES
    if chunk:
        yield chunk
