"""Figures for Prometheus. All come from the database at each scrape, so that they survive restarts and any worker."""

import signal
import threading
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from grader_service.errors import InfrastructureError
from grader_service.service.event_figures import EventFigures
from grader_service.store import backups, dead_letters, devices, operations, outbox, regrades, reviews, workers
from grader_service.store.engine import Store
from grader_service.store.tables import PRIORITY


class StoreCollector(Collector):
    """Reads the store when it is scraped."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._figures = EventFigures(store)

    def describe(self) -> list[Metric]:
        """Nothing is read at registration."""
        return []

    def collect(self) -> Iterator[Metric]:
        """One scrape; `grader_store_up` is 0 when the database does not answer."""
        up = GaugeMetricFamily("grader_store_up", "Whether the database answers.")
        try:
            families = self._read()
        except InfrastructureError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield from families

    def _read(self) -> list[Metric]:
        queue = operations.queue_state(self._store)
        runs = GaugeMetricFamily("grader_runs", "Runs by state and purpose.", labels=["state", "purpose"])
        for (state, purpose), count in queue.counts.items():
            runs.add_metric([state, purpose], count)
        oldest = GaugeMetricFamily(
            "grader_oldest_waiting_seconds", "Age of the oldest waiting run.", labels=["purpose"]
        )
        for purpose in PRIORITY:
            oldest.add_metric([purpose], queue.oldest_s.get(purpose, 0.0))
        undelivered = GaugeMetricFamily("grader_answers_undelivered", "Answers that their Redis has not taken yet.")
        undelivered.add_metric([], queue.undelivered)
        unread = GaugeMetricFamily(
            "grader_answers_unread", "Answers of those that wait until a platform reads its queue.", labels=["queue"]
        )
        for name, count in outbox.unread_by_queue(self._store).items():
            unread.add_metric([name], count)
        letters = GaugeMetricFamily("grader_dead_letters", "Messages that nobody could handle, kept for an operator.")
        letters.add_metric([], dead_letters.count(self._store))
        items = GaugeMetricFamily(
            "grader_regrade_items", "Items of batches that are not ended, by state.", labels=["batch", "state"]
        )
        for (batch, state), count in regrades.open_items(self._store).items():
            items.add_metric([batch, state], count)
        open_cases, waited_s = reviews.waiting(self._store)
        waiting = GaugeMetricFamily("grader_reviews_waiting", "Answers of checks that wait for a person.")
        waiting.add_metric([], open_cases)
        oldest_review = GaugeMetricFamily(
            "grader_reviews_oldest_seconds", "For how long the oldest of them has waited."
        )
        oldest_review.add_metric([], waited_s)
        backup = GaugeMetricFamily("grader_backup_age_seconds", "Since the newest backup was begun that is whole.")
        if (age_s := backups.age_s(self._store)) is not None:
            backup.add_metric([], age_s)
        answers = [undelivered, unread, letters, backup]
        answers += [waiting, oldest_review]
        return [runs, oldest, *answers, *self._of_devices_and_workers(), items, *self._figures.families()]

    def _of_devices_and_workers(self) -> Iterator[Metric]:
        known, said = devices.devices(self._store), workers.workers(self._store)
        states = GaugeMetricFamily("grader_devices", "Devices by state.", labels=["state"])
        for state in (devices.READY, devices.QUARANTINED, devices.DRAINING):
            states.add_metric([state], sum(device.state == state for device in known))
        yield states
        seen = GaugeMetricFamily("grader_device_seen_seconds", "Since its worker was heard of.", labels=["device"])
        for device in known:
            seen.add_metric([device.device_id], device.seen_s)
        yield seen
        out = GaugeMetricFamily(
            "grader_device_out", "Whether nobody can use a device that no operator drained.", labels=["device"]
        )
        for name, is_out in workers.out(known, said).items():
            out.add_metric([name], is_out)
        yield out
        can = GaugeMetricFamily(
            "grader_worker_ready", "Whether a worker can do its work, and said so lately.", labels=["role", "worker"]
        )
        for worker in said:
            can.add_metric([worker.role, worker.worker_id], worker.state == "ready")
        yield can
        chores = GaugeMetricFamily(
            "grader_chore_failing_seconds",
            "From the first failure in a row of a worker's chore to its last one; of chores that fail.",
            labels=["role", "worker", "chore"],
        )
        disk = GaugeMetricFamily(
            "grader_disk_ratio", "What is used of the disk of a worker's folder.", labels=["worker", "folder"]
        )
        for worker in workers.heard(said):
            for name, failing in worker.chores.items():
                chores.add_metric([worker.role, worker.worker_id, name], failing["for_s"])
            for folder, ratio in worker.disk.items():
                disk.add_metric([worker.worker_id, folder], ratio)
        yield from (chores, disk)
        # Not `instance`: that label is the exporter's address in Prometheus.
        memory = GaugeMetricFamily(
            "grader_redis_memory_ratio", "Memory that a Redis uses, of its maxmemory.", labels=["redis"]
        )
        for name, ratio in workers.newest_memory(said).items():
            memory.add_metric([name], ratio)
        yield memory


def serve_metrics(store: Store, port: int) -> None:
    """Answers `GET /metrics` until SIGTERM or SIGINT."""
    registry = CollectorRegistry()
    registry.register(StoreCollector(store))
    server, thread = start_http_server(port, registry=registry)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    stop.wait()
    server.shutdown()
    thread.join(timeout=10.0)
