"""What benchmarks count and conclude; what they measure is not looked at."""

import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "bench"))

import capacity
import fleet
import gate
import peers
import scaling
import soak_checks
import soak_faults
import warm

from grader_service.store import leases, results
from grader_service.store.engine import Store
from tests.factories import a_measurement
from tests.store.factories import a_submission, a_verdict, accept


def small(load=0.8, gpus=20, **kind):
    """A fleet that was played to its end."""
    rate = load * capacity.Model(gpus).per_hour / 3600
    played = fleet.Fleet(gpus, rate, 20_000, 2_000, 1_000, 1, **kind)
    played.play()
    return played


def test_a_fleet_keeps_every_promise():
    """Runners die and stall, and nothing is lost, graded twice or out of turn."""
    played = small()
    assert played.crashes > 5
    assert played.refused == played.stalls > 5
    assert not any(capacity.promises(played).values())
    assert not [row.name for row in capacity.compared(played, capacity.Model(20), 0.8, 3.0) if row.broken]


def test_without_a_fence_stalled_runners_are_seen():
    """The audit knows nothing of how the fleet refuses them."""
    broken = capacity.promises(small(fenced=False))
    assert broken["stale result taken"] > 5
    assert broken["graded twice"] > 5


def test_the_audit_sees_a_wrong_choice():
    """Two on one device, two of one learner, a re-grade before a live submission."""
    audit = fleet.Audit(gpus=2, learners=2)
    live, again = fleet.Run(0, fleet.LIVE, 0.0, 0, poison=False), fleet.Run(1, fleet.REGRADE, 0.0, 0, poison=False)
    audit.queued(live)
    audit.claimed(again, 0, 1.0, 5.0)
    audit.claimed(live, 0, 4.0, 9.0)
    audit.claimed(again, 1, 6.0, 9.0)
    assert audit.broken == {
        "two on one device": 1, "two of one learner": 1, "regrade before live": 1, "stale result taken": 0
    }  # fmt: skip


@pytest.mark.parametrize(
    ("row", "broken"),
    [
        (capacity.Row("equal", 10.0, 11.0, 1, 1.0), False),
        (capacity.Row("more", 10.0, 11.1, 1, 1.0), True),
        (capacity.Row("less", 10.0, 8.9, 1, 1.0), True),
        (capacity.Row("below its bound", 10.0, 1.0, 1, 1.0, bound=True), False),
        (capacity.Row("above its bound", 10.0, 12.0, 1, 1.0, bound=True), True),
        (capacity.Row("not claimed", 10.0, 99.0, 1), False),
        (capacity.Row("not said", None, 99.0, 1), False),
    ],
    ids=lambda value: value.name if isinstance(value, capacity.Row) else "",
)
def test_a_model_that_is_off_is_told(row, broken):
    """Only where it claims to be right."""
    assert row.broken is broken
    assert ("BROKEN" in str(row)) is broken


def test_the_95th_percentile_is_no_maximum():
    """Nearest rank: of 20 the 19th."""
    assert [warm.p95(range(1, count + 1)) for count in (1, 10, 20, 50, 100)] == [1, 10, 19, 48, 95]
    low, high = warm.interval(list(range(50)), warm.p95)
    assert low < 47 <= high


def test_the_table_of_graders_is_that_of_the_page():
    """Names and what each lacks stand once, in the code."""
    page = (Path(__file__).resolve().parent.parent / "docs" / "performance.md").read_text()
    for name, lacks in peers.SHOWN.values():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
        assert row.endswith(f"| {lacks} |" if lacks else "| |")


def test_a_prepared_grading_that_doubled_closes_the_gate():
    """And one that grew by a quarter does not, by the spread of the turns in docs/performance.md."""
    for name, usual, lower_end in (("cold", 1.62, 0.76), ("prepared", 0.72, 0.81)):
        assert 1.25 * 1.05 * usual < gate.LIMITS[name] < 2 * lower_end * usual


class Judged:
    """As much of a verdict as a phase looks at."""

    status = type("Status", (), {"value": "passed"})
    measurement = None
    provenance = type("Run", (), {"gpu_held_s": 10.0})


def test_a_phase_counts_what_ended_while_all_worked():
    """A worker that was done first goes on; what ends after the last one's share does not count."""
    times = {"GPU 0": [20, 40, 60, 80, 100], "GPU 1": [30, 60, 90]}
    ended = [scaling.Ended(name, f"{name} {at}", 1000.0 + at) for name, ats in times.items() for at in ats]
    verdicts = dict.fromkeys((one.submission_id for one in ended), Judged)
    phase = scaling.counted(list(times), 3, 1000.0, ended, verdicts)
    assert phase.ends_s == {"GPU 0": [20, 40, 60, 80], "GPU 1": [30, 60, 90]}
    assert phase.per_hour == {"GPU 0": 180.0, "GPU 1": 120.0}
    assert phase.passed == phase.graded == 8


def test_every_fault_of_the_soak_has_its_turn():
    """Each kind once before any comes again, in an order that the seed decides; the long outage comes by itself."""
    servers = SimpleNamespace(redis=None, results=None)

    def plan(seed, count):
        return list(islice(soak_faults.Nemesis(servers, None, {"the services": None}, seed).plan(), count))

    kinds = set(plan(1, 100))
    first, second = plan(1, len(kinds)), plan(1, 2 * len(kinds))[len(kinds) :]
    assert set(first) == set(second) == kinds
    assert first == plan(1, len(kinds)) != plan(2, len(kinds))
    assert "fill the disk of the services" in kinds
    assert soak_faults.OUTAGE not in kinds


@pytest.mark.parametrize(("attempt", "wrong"), [(2, False), (3, True)])
def test_the_soak_sees_an_attempt_that_was_charged(tmp_path, attempt, wrong):
    """A learner's second submission, judged as the second attempt, or as the third."""
    store = Store(f"sqlite:///{tmp_path / 'grader.db'}")
    store.migrate()
    for number, judged_as in ((1, 1), (2, attempt)):
        accept(store, a_submission(number, sha=str(number)))
        results.store_evidence(store, leases.claim(store, "run", "r", 60), "measured", b"{}", {})
        verdict = a_verdict(f"s:{number}").model_copy(update={"measurement": a_measurement(attempt=judged_as)})
        results.store_verdict(store, leases.claim(store, "judge", "j", 60), verdict)
    said = soak_checks.charged(store, soak_checks.look(store))
    store.close()
    assert bool(said) is wrong
