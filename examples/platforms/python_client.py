"""A lab platform in Python, with the client of the package: posts one submission and prints its verdict as JSON."""

import json
import os
import sys

from grader_service.client import Client, ClientError, InvalidRequest, Status

USAGE = """\
usage: python3 python_client.py PATH SUBMISSION_ID [STEP…]   (an id is 1 to 128 of A-Za-z0-9._:-)
needs GRADER_REDIS_URL=redis://:PASSWORD@HOST:6379/0 and GRADER_PUBLIC_KEYS="KEY …", several with spaces between
and GRADER_RESULT_URL=redis://:PASSWORD@HOST:6380/0 where the service keeps answers in another Redis"""

url, keys = os.environ.get("GRADER_REDIS_URL"), os.environ.get("GRADER_PUBLIC_KEYS", "").split()
if not url or not keys or len(sys.argv) < 3:  # without keys no signature would be checked
    print(USAGE, file=sys.stderr)
    sys.exit(2)
path, submission_id, *steps = sys.argv[1:]

try:
    with Client(url, result_url=os.environ.get("GRADER_RESULT_URL") or None, public_keys=keys) as client:
        client.post(
            path, lab="dali-pipelines", submission_id=submission_id, learner="u-python", cohort="2026-fall", steps=steps
        )
        verdict = client.wait(submission_id, timeout_s=1800)
except ClientError as error:  # the text says what to do, `error.retry` whether the same call can succeed later
    print(error, file=sys.stderr)
    sys.exit(2 if isinstance(error, InvalidRequest) else 1)

points = f"{verdict.code}: {verdict.feedback}"  # where there are none
if verdict.score is not None:
    points = f"{verdict.score:g} of {verdict.max_score:g}"
print(f"{verdict.submission_id} {verdict.status}: {points}", file=sys.stderr)
print(json.dumps(verdict.document))  # typed in `verdict`, and here to be stored as it came
sys.exit(verdict.status is Status.REJECTED)
