"""X: archives that unpack to more than they are, and a queue that one learner fills."""

from sqlalchemy.exc import IntegrityError

from grader_service.store.engine import Store
from grader_service.store.leases import claim
from tests.corpus.case import Observed, Procedure
from tests.corpus.cheats.i_archives import GOOD
from tests.corpus.parts import REFLECTIONS
from tests.corpus.parts_texts import refused_cheat
from tests.corpus.world import World
from tests.factories import message
from tests.ingest import packing
from tests.receiving import receive

_MOST = 60
"""Submissions of one learner within an hour."""


def _zeros() -> bytes:
    """A zip of some megabytes that unpacks to more than a gigabyte."""
    block = bytes(300 << 20)
    return packing.zip_bytes([GOOD, *((f"{number}.bin", block) for number in range(4))])


def _crowd() -> bytes:
    """A zip of very many empty members."""
    return packing.zip_bytes([GOOD, *((f"d/{number}", b"") for number in range(25_000))], method=0)


def _message(number: int, learner: str) -> dict[str, object]:
    return message(f"{learner}:{number}", REFLECTIONS, learner=learner)


def _flood(world: World) -> Observed:
    """One learner posts without end; somebody else posts after that."""
    with world.deps() as deps:
        kinds = [receive(deps, _message(number, "ann"), "live", None).kind for number in range(_MOST + 5)]
        other = receive(deps, _message(0, "bob"), "live", None).kind
    taken = kinds.count("accepted")
    return Observed("failed" if taken <= _MOST and other == "accepted" else "passed", f"queue.took_{taken}", other)


def _claimed(store: Store, runner: str) -> str:
    try:
        one = claim(store, "run", runner, 60.0)
    except IntegrityError:
        return "refused"  # by the index that stands behind the order of claims
    return "nothing" if one is None else one.submission_id


def _overtaken(world: World) -> Observed:
    """One learner posts three times before somebody else posts; two runners ask for work."""
    with world.deps() as deps:
        for learner, number in (("ann", 0), ("ann", 1), ("ann", 2), ("bob", 0)):
            receive(deps, _message(number, learner), "live", None)
        order = [_claimed(deps.store, f"runner-{number}") for number in range(3)]
    good = order == ["ann:0", "bob:0", "nothing"]
    return Observed("failed" if good else "passed", "queue.in_turn" if good else "queue.one_has_all", ", ".join(order))


CASES = (
    refused_cheat(
        "X08-zeros", "a zip of 1.2 MB that unpacks to 1.2 GB", _zeros, "archive.too_large", filename="work.zip"
    ),
    refused_cheat(
        "X08-members", "a zip of 25,000 empty files", _crowd, "archive.too_many_members", filename="work.zip"
    ),
    Procedure("X10-flood", "65 submissions of one learner at once", _flood, ("queue.took_60",)),
    Procedure("X10-turns", "three submissions of one learner before everybody else's", _overtaken, ("queue.in_turn",)),
)
