"""Figures for Prometheus. All come from the database at each scrape, so that they survive restarts and any worker."""

import signal
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from grader_service.errors import InfrastructureError
from grader_service.service.event_figures import EventFigures, filled
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
        try:
            families = list(self._families())
        except InfrastructureError:
            families = []
        yield _gauge("grader_store_up", "Whether the database answers.", {(): bool(families)})
        yield from families

    def _families(self) -> Iterator[Metric]:
        queue = operations.queue_state(self._store)
        yield _gauge("grader_runs", "Runs by state and purpose.", queue.counts, "state", "purpose")
        oldest = {purpose: queue.oldest_s.get(purpose, 0.0) for purpose in PRIORITY}
        yield _gauge("grader_oldest_waiting_seconds", "Age of the oldest waiting run.", oldest, "purpose")
        text = "Answers that their Redis has not taken yet."
        yield _gauge("grader_answers_undelivered", text, {(): queue.undelivered})
        text = "Answers of those that wait until a platform reads its queue."
        yield _gauge("grader_answers_unread", text, outbox.unread_by_queue(self._store), "queue")
        text = "Messages that nobody could handle, kept for an operator."
        yield _gauge("grader_dead_letters", text, {(): dead_letters.count(self._store)})
        age_s = backups.age_s(self._store)
        text = "Since the newest backup was begun that is whole."
        yield _gauge("grader_backup_age_seconds", text, {} if age_s is None else {(): age_s})
        waiting, waited_s = reviews.waiting(self._store)
        yield _gauge("grader_reviews_waiting", "Answers of checks that wait for a person.", {(): waiting})
        text = "For how long the oldest of them has waited."
        yield _gauge("grader_reviews_oldest_seconds", text, {(): waited_s})
        yield from self._of_devices_and_workers()
        text = "Items of batches that are not ended, by state."
        yield _gauge("grader_regrade_items", text, regrades.open_items(self._store), "batch", "state")
        yield from self._figures.families()

    def _of_devices_and_workers(self) -> Iterator[Metric]:
        known, said = devices.devices(self._store), workers.workers(self._store)
        every = (devices.READY, devices.QUARANTINED, devices.DRAINING)
        states = {state: sum(device.state == state for device in known) for state in every}
        yield _gauge("grader_devices", "Devices by state.", states, "state")
        seen = {device.device_id: device.seen_s for device in known}
        yield _gauge("grader_device_seen_seconds", "Since its worker was heard of.", seen, "device")
        text = "Whether nobody can use a device that no operator drained."
        yield _gauge("grader_device_out", text, workers.out(known, said), "device")
        ready = {(worker.role, worker.worker_id): worker.state == "ready" for worker in said}
        text = "Whether a worker can do its work, and said so lately."
        yield _gauge("grader_worker_ready", text, ready, "role", "worker")
        heard = workers.heard(said)
        failing = {
            (worker.role, worker.worker_id, name): chore["for_s"]
            for worker in heard
            for name, chore in worker.chores.items()
        }
        text = "From the first failure in a row of a worker's chore to its last one; of chores that fail."
        yield _gauge("grader_chore_failing_seconds", text, failing, "role", "worker", "chore")
        disk = {(worker.worker_id, folder): ratio for worker in heard for folder, ratio in worker.disk.items()}
        yield _gauge("grader_disk_ratio", "What is used of the disk of a worker's folder.", disk, "worker", "folder")
        # Not `instance`: that label is the exporter's address in Prometheus.
        text = "Memory that a Redis uses, of its maxmemory."
        yield _gauge("grader_redis_memory_ratio", text, workers.newest_memory(said), "redis")


def _gauge(name: str, text: str, values: Mapping[Any, float], *labels: str) -> Metric:
    return filled(GaugeMetricFamily(name, text, labels=labels), values)


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
