"""Latencies and counts from the audit trail, whose events are read once, in order, and again after a restart.

So metrics do not depend on when the exporter was started. Totals of events that are a day old are stored: a restart
reads only younger events, and old ones may be removed.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from pydantic import TypeAdapter, ValidationError

from grader_service.store import event_totals
from grader_service.store.devices import device_of
from grader_service.store.engine import Store
from grader_service.store.operations import Happened, events_after, events_of_age
from grader_service.store.opinions import SECOND_OPINION

BUCKETS_S = (0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
_BEGINS = {
    "accepted": ("wait_run", "whole"),
    "run_claimed": ("run",),
    "run_done": ("wait_judge",),
    "judge_claimed": ("judge",),
}
_ENDS = {
    "run_claimed": ("wait_run",),
    "run_done": ("run",),
    "judge_claimed": ("wait_judge",),
    "verdict": ("judge", "whole"),
}
_LEAVES_DEVICE = frozenset({"run_done", "failed_by_us", "given_back", "needs_attention", "cancelled"})
_CLOSED = frozenset({"verdict", "regraded_aside", "needs_attention", "cancelled"})


_FOLD_AGE_S = 86_400.0
_AT_ONCE = 5000


@dataclass
class Histogram:
    """How often what took how long."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    """For each of `BUCKETS_S` those that took no longer, and longer than the one before; last, those beyond."""
    total_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Counts one."""
        place = next((number for number, edge in enumerate(BUCKETS_S) if seconds <= edge), len(BUCKETS_S))
        self.counts[place] += 1
        self.total_s += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Upper edges with how many lie below, as Prometheus wants them."""
        rows, below = [], 0
        for edge, count in zip((*map(str, BUCKETS_S), "+Inf"), self.counts, strict=True):
            below += count
            rows.append((edge, float(below)))
        return rows


@dataclass
class Tally:
    """What events came to, and what is under way after the last of them."""

    open: dict[str, dict[str, float]] = field(default_factory=dict)
    """Run to stage to when it began, seconds since 1970; runs that are over are not in it."""
    on_device: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Run to the device that it holds, and since when."""
    stages: dict[str, Histogram] = field(default_factory=dict)
    run_stages: dict[str, Histogram] = field(default_factory=dict)
    gpu: Histogram = field(default_factory=Histogram)
    kinds: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    checks: dict[str, Counter[str]] = field(default_factory=dict)
    """Check to outcome to how often."""
    opinions: Counter[str] = field(default_factory=Counter)
    devices: dict[str, float] = field(default_factory=dict)
    """Device to seconds for which runs held it."""
    edges: tuple[float, ...] = BUCKETS_S

    @classmethod
    def read(cls, document: str) -> "Tally":
        """One that was written; an empty one in place of one that another version wrote otherwise."""
        try:
            found = _TALLY.validate_json(document)
        except ValidationError:
            return cls()
        return found if found.edges == BUCKETS_S else cls()

    def write(self) -> str:
        """As JSON."""
        return _TALLY.dump_json(self).decode()

    def take(self, event: Happened) -> None:
        """Counts one event; they come in order."""
        self.kinds[event.kind] += 1
        if event.run_id is not None:
            self._follow(event, event.run_id)
        if event.kind == "verdict":
            self.verdicts[str(event.detail.get("status"))] += 1
            for check, outcome in (event.detail.get("checks") or {}).items():
                self.checks.setdefault(check, Counter())[outcome] += 1
        if (came_of_it := event.detail.get(SECOND_OPINION)) is not None:
            self.opinions[came_of_it] += 1
        if (held_s := event.detail.get("gpu_held_s")) is not None:
            self.gpu.add(float(held_s))
        for stage, seconds in (event.detail.get("timings_s") or {}).items():
            self.run_stages.setdefault(stage, Histogram()).add(float(seconds))

    def _follow(self, event: Happened, run_id: str) -> None:
        began = self.open.get(run_id, {})
        for stage in _ENDS.get(event.kind, ()):
            if stage in began:
                self.stages.setdefault(stage, Histogram()).add(max(0.0, event.at - began.pop(stage)))
        if event.kind in _BEGINS:
            self.open.setdefault(run_id, began).update(dict.fromkeys(_BEGINS[event.kind], event.at))
        if event.kind in _CLOSED:
            self.open.pop(run_id, None)
        # A run that fails, or whose worker dies, held its device as well: until somebody says so.
        if event.kind in _LEAVES_DEVICE and (held := self.on_device.pop(run_id, None)) is not None:
            device, since = held
            self.devices[device] = self.devices.get(device, 0.0) + max(0.0, event.at - since)
        if event.kind == "run_claimed":
            self.on_device[run_id] = (device_of(event.actor), event.at)


_TALLY = TypeAdapter(Tally)


def count_old(store: Store) -> int:
    """Adds events that are a day old to the totals, from when on they may be removed; returns how many, some thousands.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        totals = event_totals.hold(connection)
        if totals is None:
            return 0
        events = events_of_age(connection, totals.last_event, _FOLD_AGE_S, _AT_ONCE)
        if events:
            tally = Tally.read(totals.document)
            for event in events:
                tally.take(event)
            event_totals.replace(connection, events[-1].id, tally.write())
    return len(events)


class EventFigures:
    """Follows the audit trail of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._last = -1
        self._tally = Tally()

    def families(self) -> Iterator[Metric]:
        """Everything so far.

        Raises:
            StoreUnavailable: the database failed.
        """
        with self._lock:
            with self._store.transaction() as connection:
                totals = event_totals.read(connection)
            if totals.last_event > self._last:  # at the start, or after so long a pause that events may be gone
                self._last, self._tally = totals.last_event, Tally.read(totals.document)
            for event in events_after(self._store, self._last):
                self._last = event.id
                self._tally.take(event)
            yield from self._as_metrics()

    def _as_metrics(self) -> Iterator[Metric]:
        tally = self._tally
        yield _histograms("grader_stage_seconds", "How long each stage took.", tally.stages)
        yield _histograms("grader_run_stage_seconds", "How long each stage of a judged run took.", tally.run_stages)
        held = HistogramMetricFamily("grader_verdict_gpu_seconds", "How long a verdict's run held its GPU.")
        held.add_metric([], tally.gpu.buckets(), tally.gpu.total_s)
        yield held
        yield _counter("grader_events", "Events of the audit trail by kind.", ["kind"], tally.kinds)
        yield _counter("grader_verdicts", "Verdicts by status.", ["status"], tally.verdicts)
        checks = {(check, outcome): n for check, outcomes in tally.checks.items() for outcome, n in outcomes.items()}
        yield _counter("grader_check_results", "Results of checks.", ["check", "outcome"], checks)
        text = "Second opinions that were wanted, by what came of them."
        yield _counter("grader_second_opinions", text, ["result"], tally.opinions)
        yield _counter("grader_device_seconds", "Time that runs held each device.", ["device"], tally.devices)


def _histograms(name: str, text: str, stages: Mapping[str, Histogram]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=["stage"])
    for stage, histogram in sorted(stages.items()):
        family.add_metric([stage], histogram.buckets(), histogram.total_s)
    return family


def _counter(name: str, text: str, labels: list[str], values: Mapping[Any, float]) -> Metric:
    return filled(CounterMetricFamily(name, text, labels=labels), values)


def filled(family: CounterMetricFamily | GaugeMetricFamily, values: Mapping[Any, float]) -> Metric:
    """A family with these values, each by that of its label, or by a tuple of those of its labels."""
    for key, value in values.items():
        family.add_metric([key] if isinstance(key, str) else list(key), value)
    return family
