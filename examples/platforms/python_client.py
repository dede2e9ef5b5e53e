"""A lab platform in Python, with the client of the package: posts one submission and prints its verdict as JSON.

GRADER_REDIS_URL=redis://:PASSWORD@HOST:6379/0 GRADER_PUBLIC_KEYS=KEY python3 python_client.py PATH SUBMISSION_ID [STEP…]
"""

import json
import os
import sys

from grader_service.client import Client, MessageRejected, TryLater

path, submission_id, *steps = sys.argv[1:]
keys = os.environ["GRADER_PUBLIC_KEYS"].split()  # verdicts that none of them signed raise SignatureInvalid

with Client(os.environ["GRADER_REDIS_URL"], public_keys=keys) as client:
    client.post(
        path, lab="dali-pipelines", submission_id=submission_id, learner="u-17", cohort="2026-fall", steps=steps
    )
    try:
        verdict = client.wait(submission_id, timeout_s=1800)
    except TryLater as refusal:  # nothing was stored, no attempt was counted: post the same again in a minute
        sys.exit(str(refusal))
    except MessageRejected as refusal:  # the platform's mistake: the text names each field
        sys.exit(str(refusal))

print(f"{verdict.submission_id} {verdict.status}: {verdict.score} of {verdict.max_score}", file=sys.stderr)
print(json.dumps(verdict.document))  # typed in `verdict`, and here to be stored as it came
