"""A judge whose place of backups takes nothing and never says so; what a minute is for a chore is a second here."""

import threading

from grader_service.logs import configure_logs
from grader_service.queue.judge_worker import judge_worker
from grader_service.service import sweeper
from grader_service.settings import Settings
from grader_service.store.files import Files

_put = Files.put


def put(files, name, data):
    """Hangs where an answer is to be kept."""
    if name.startswith("answers/"):
        threading.Event().wait()
    _put(files, name, data)


if __name__ == "__main__":
    configure_logs("hanging")
    sweeper.FAILING_S = 1.0
    Files.put = put
    raise SystemExit(judge_worker(Settings()))
