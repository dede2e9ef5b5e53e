"""Latencies and counts out of the audit trail: each event is read once, in order, and every restart reads it anew.

So figures survive any worker, and an exporter that starts late says the same as one that was always there.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from grader_service.store.devices import device_of
from grader_service.store.engine import Store
from grader_service.store.operations import Happened, events_after

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


@dataclass
class _Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    total_s: float = 0.0

    def add(self, seconds: float) -> None:
        place = next((number for number, edge in enumerate(BUCKETS_S) if seconds <= edge), len(BUCKETS_S))
        self.counts[place] += 1
        self.total_s += seconds

    def buckets(self) -> list[tuple[str, float]]:
        rows, below = [], 0
        for edge, count in zip((*map(str, BUCKETS_S), "+Inf"), self.counts, strict=True):
            below += count
            rows.append((edge, float(below)))
        return rows


class EventFigures:
    """Follows the audit trail of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._last = 0
        self._open: dict[str, dict[str, float]] = {}
        """Run to stage to when it began; runs that are over are not in it."""
        self._on_device: dict[str, tuple[str, float]] = {}
        """Run to the device that it holds, and since when."""
        self._stages: dict[str, _Histogram] = defaultdict(_Histogram)
        self._kinds: Counter[str] = Counter()
        self._verdicts: Counter[str] = Counter()
        self._checks: Counter[tuple[str, str]] = Counter()
        self._devices: dict[str, float] = defaultdict(float)
        self._gpu = _Histogram()
        self._run_stages: dict[str, _Histogram] = defaultdict(_Histogram)

    def families(self) -> Iterator[Metric]:
        """Everything so far.

        Raises:
            StoreUnavailable: the database failed.
        """
        with self._lock:
            for event in events_after(self._store, self._last):
                self._last = event.id
                self._take(event)
            yield from self._as_metrics()

    def _take(self, event: Happened) -> None:
        self._kinds[event.kind] += 1
        if event.run_id is not None:
            self._follow(event, event.run_id)
        if event.kind == "verdict":
            self._verdicts[str(event.detail.get("status"))] += 1
            for check, outcome in (event.detail.get("checks") or {}).items():
                self._checks[check, outcome] += 1
        if (held_s := event.detail.get("gpu_held_s")) is not None:
            self._gpu.add(float(held_s))
        for stage, seconds in (event.detail.get("timings_s") or {}).items():
            self._run_stages[stage].add(float(seconds))

    def _follow(self, event: Happened, run_id: str) -> None:
        began = self._open.get(run_id, {})
        for stage in _ENDS.get(event.kind, ()):
            if stage in began:
                self._stages[stage].add(max(0.0, event.at - began.pop(stage)))
        if event.kind in _BEGINS:
            self._open.setdefault(run_id, began).update(dict.fromkeys(_BEGINS[event.kind], event.at))
        if event.kind in _CLOSED:
            self._open.pop(run_id, None)
        # A run that fails, or whose worker dies, held its device as well: until somebody says so.
        if event.kind in _LEAVES_DEVICE and (held := self._on_device.pop(run_id, None)) is not None:
            device, since = held
            self._devices[device] += max(0.0, event.at - since)
        if event.kind == "run_claimed":
            self._on_device[run_id] = (device_of(event.actor), event.at)

    def _as_metrics(self) -> Iterator[Metric]:
        yield _histograms("grader_stage_seconds", "How long each stage took.", self._stages)
        yield _histograms("grader_run_stage_seconds", "How long each stage of a judged run took.", self._run_stages)
        held = HistogramMetricFamily("grader_verdict_gpu_seconds", "How long a verdict's run held its GPU.")
        held.add_metric([], self._gpu.buckets(), self._gpu.total_s)
        yield held
        yield _counter("grader_events", "Events of the audit trail by kind.", ["kind"], self._kinds)
        yield _counter("grader_verdicts", "Verdicts by status.", ["status"], self._verdicts)
        yield _counter("grader_check_results", "Results of checks.", ["check", "outcome"], self._checks)
        yield _counter("grader_device_seconds", "Time that runs held each device.", ["device"], self._devices)


def _histograms(name: str, text: str, stages: Mapping[str, _Histogram]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=["stage"])
    for stage, histogram in sorted(stages.items()):
        family.add_metric([stage], histogram.buckets(), histogram.total_s)
    return family


def _counter(name: str, text: str, labels: list[str], values: Mapping[Any, float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric([key] if isinstance(key, str) else list(key), value)
    return family
