"""A lab platform with Celery, without the grader's package: posts submissions, and is told verdicts as tasks.

celery -A celery_platform worker -Q lab-platform -c 1 --without-gossip --without-mingle --without-heartbeat
    stores what comes as verdicts/SUBMISSION_ID.json; in one process, so that the last that comes is what is stored
python3 celery_platform.py PATH SUBMISSION_ID [STEP…]
    posts one submission
Both need GRADER_REDIS_URL=redis://:PASSWORD@HOST:6379/0 and GRADER_PUBLIC_KEYS="KEY …", several with spaces between,
and GRADER_RESULT_URL=redis://:PASSWORD@HOST:6380/0 where the service keeps answers in another Redis.
"""

import base64
import json
import os
import sys
from pathlib import Path

import rfc8785
from celery import Celery
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

URL, KEYS = os.environ.get("GRADER_REDIS_URL"), os.environ.get("GRADER_PUBLIC_KEYS", "").split()
if not URL or not KEYS or (__name__ == "__main__" and len(sys.argv) < 3):
    print(__doc__, file=sys.stderr)
    sys.exit(2)
RESULT_URL = os.environ.get("GRADER_RESULT_URL") or URL
grader = Celery("grader", broker=URL)  # posts submissions to the service's broker
# The worker's application: `celery -A` takes the one named `app`. The service sends verdicts to the Redis where it keeps
# answers, so that one, and not the broker to which submissions are posted, is the broker of this worker.
app = Celery("lab-platform", broker=RESULT_URL)
for one in (grader, app):
    one.conf.update(task_serializer="json", accept_content=["json"])
# What Celery keeps beside the queue, too, under names of our own: a platform that was given a name may use no others.
lists = {f"{name}_key": f"lab-platform:{name}" for name in ("unacked", "unacked_index", "unacked_mutex")}
app.conf.update(broker_transport_options=lists, worker_enable_remote_control=False)


@app.task(name="lab.verdict_ready", ignore_result=True, acks_late=True, reject_on_worker_lost=True)
def verdict_ready(verdict):
    """Called at least once for each verdict; a re-graded submission has another one, and the last that comes counts."""
    kept, stored = Path("unverified"), Path("verdicts")
    for folder in (kept, stored):
        folder.mkdir(exist_ok=True)
    name = f"{Path(verdict['submission_id']).name}.json"  # no path: whoever can write to Redis can write this
    (kept / name).write_text(json.dumps(verdict))  # it leaves the queue, so what fails the check stays here
    check_signature(verdict)
    (kept / name).rename(stored / name)


def check_signature(verdict):
    """Raises where no key that we know signed this."""
    signature = verdict["signature"]
    if signature["public_key"] not in KEYS:
        raise ValueError(f"signature: {signature['public_key']} is not among GRADER_PUBLIC_KEYS")
    unsigned = {name: value for name, value in verdict.items() if name != "signature"}
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["public_key"]))
    key.verify(bytes.fromhex(signature["value"]), rfc8785.dumps(unsigned))  # raises InvalidSignature


def post(path, submission_id, steps=()):
    """Posts one submission; the same again, with the same id, is graded once."""
    submission = {
        "submission_id": submission_id,
        "lab": "dali-pipelines",
        "learner": "u-celery",
        "cohort": "2026-fall",
        "steps": list(steps),
        "artifact": {"filename": path.name, "inline": base64.b64encode(path.read_bytes()).decode()},
        "reply_to": {"queue": "lab-platform", "task": "lab.verdict_ready"},
    }
    grader.send_task("grader.grade", kwargs={"submission": submission}, queue="live", ignore_result=True)


if __name__ == "__main__":
    post(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
