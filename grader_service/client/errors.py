"""What can go wrong between a platform and the service; each error says what was expected, what came and what to do.

A submission that fails, or is rejected because of what is in it, is no error: that is a verdict.
"""

from typing import ClassVar

from grader_service.client.received import ReceivedVerdict
from grader_service.errors import Audience, GraderError


class ClientError(GraderError):
    """Root of the client's errors; `retry` says whether the same call can succeed later."""

    audience: ClassVar[Audience] = "caller"


class InvalidRequest(ClientError):
    """The call itself is wrong, such as a file that cannot be read or an id with spaces; nothing was posted."""

    exit_code: ClassVar[int] = 2


class BrokerUnreachable(ClientError):
    """The broker, or the Redis with the results, does not answer or refuses; the text says which of the two.

    After a call that posts, the submission may have been posted all the same: post it again.
    """

    retry: ClassVar[bool] = True


class TimedOut(ClientError):
    """No verdict came in time. The submission is still with the service: wait again.

    Or it was answered more than a day ago, or where this client does not look; the text says where it looked.
    """

    retry: ClassVar[bool] = True


class TryLater(ClientError):
    """The service's queue is full, or the learner handed in too often: not stored, no attempt. Post it again later."""

    retry: ClassVar[bool] = True

    def __init__(self, verdict: ReceivedVerdict) -> None:
        super().__init__(
            f"submission {verdict.submission_id} was not accepted for now ({verdict.code}): {verdict.feedback}"
        )
        self.verdict = verdict


class MessageRejected(ClientError):
    """The message cannot be used (`message.*`, `artifact.*`, `submission.conflict`): not stored. Change the message."""

    exit_code: ClassVar[int] = 5

    def __init__(self, verdict: ReceivedVerdict) -> None:
        super().__init__(f"the message of {verdict.submission_id} was rejected ({verdict.code}): {verdict.feedback}")
        self.verdict = verdict


class SignatureInvalid(ClientError):
    """The verdict was changed, never signed, or signed by a key that the platform does not know: do not record it."""


class UnexpectedAnswer(ClientError):
    """The result of the task is no verdict that this client can read: another application's, or a later schema's."""
