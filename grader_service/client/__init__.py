"""For lab platforms in Python: post a submission, wait for its verdict, check its signature, without a Celery app.

    broker, results = "redis://:PASSWORD@127.0.0.1:6379/0", "redis://:PASSWORD@127.0.0.1:6380/0"
    with Client(broker, result_url=results, public_keys=[KEY]) as client:
        verdict = client.grade("submission.ipynb", lab="dali-pipelines", submission_id="lms:4711", learner="u-17")

Of the service it knows the form of messages and verdicts; it imports redis, pydantic, cryptography and rfc8785.
"""

from grader_service.client.client import Client
from grader_service.client.errors import (
    BrokerUnreachable,
    ClientError,
    InvalidRequest,
    MessageRejected,
    SignatureInvalid,
    TimedOut,
    TryLater,
    UnexpectedAnswer,
)
from grader_service.client.received import ReceivedVerdict
from grader_service.client.signatures import verify
from grader_service.model.keys import KeyList
from grader_service.model.progress import ProgressEvent
from grader_service.model.verdict import Mode, Outcome, Status, Verdict
from grader_service.service.message import ArtifactMessage, ReplyTo

__all__ = [
    "ArtifactMessage",
    "BrokerUnreachable",
    "Client",
    "ClientError",
    "InvalidRequest",
    "KeyList",
    "MessageRejected",
    "Mode",
    "Outcome",
    "ProgressEvent",
    "ReceivedVerdict",
    "ReplyTo",
    "SignatureInvalid",
    "Status",
    "TimedOut",
    "TryLater",
    "UnexpectedAnswer",
    "Verdict",
    "verify",
]
