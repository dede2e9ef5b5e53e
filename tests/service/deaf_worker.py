"""A runner whose consumer keeps the place of every message for ever, so that it takes one and then no more."""

from kombu.transport import redis

from grader_service.logs import configure_logs
from grader_service.queue.run_worker import run_worker
from grader_service.queue.transport import Channel
from grader_service.settings import Settings


class Hoarder(redis.QoS):
    """Acknowledges towards Redis only."""

    def ack(self, delivery_tag):
        """Gives no place back."""
        self._remove_from_indices(delivery_tag).execute()


if __name__ == "__main__":
    configure_logs("deaf")
    Channel.QoS = Hoarder
    raise SystemExit(run_worker(Settings()))
