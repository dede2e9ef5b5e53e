"""Posts submissions to the service's broker, and reads their verdicts where the service keeps results."""

import base64
import contextlib
import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from pydantic import ValidationError
from redis.exceptions import AuthenticationError, ConnectionError, RedisError, TimeoutError  # noqa: A004

from grader_service.client.errors import (
    InvalidRequest,
    MessageRejected,
    TimedOut,
    TryLater,
    UnexpectedAnswer,
)
from grader_service.client.received import ReceivedVerdict
from grader_service.client.server import Server
from grader_service.client.signatures import known_keys, verify
from grader_service.client.wire import celery_message, progress_of, result_key, result_of
from grader_service.model.keys import KeyList
from grader_service.model.progress import ProgressEvent
from grader_service.model.verdict import Status
from grader_service.service.message import MAX_INLINE_BYTES, ArtifactMessage, Malformed, ReplyTo, parse_message

_LOOK_EVERY_S = 0.2
_REFUSALS = ("message.", "artifact.", "submission.conflict")
_LATER = "queue."
_UNREADABLE = "message.malformed"
"""The id may be among what could not be read."""
_QUEUES = ("live", "regrade")


class Client:
    """A lab platform's side of the queue; one object may serve many threads.

    The id of a submission is also the id of its Celery task: whoever knows it can wait for the verdict, in another
    process too, and after a restart.

    Args:
        broker_url: of the Redis where submissions are posted, with its password: `redis://:PASSWORD@HOST:6379/0`;
            `rediss://` through TLS.
        result_url: of the Redis where the service keeps results (its GRADER_RESULT_URL), in the same form; with
            `compose.yaml` it is another one than the broker, on port 6380. None where the broker keeps them.
        public_keys: keys of the service. When there are any, `wait` returns verdicts that one of them signed, and
            raises on others; without them no signature is checked. Either 64 hexadecimal digits each, or the list
            with their times that `grader keys list --json` prints (`KeyList.read`).

    Raises:
        InvalidRequest: one of the two is no Redis URL, or a key is none; the text says which.
    """

    def __init__(
        self, broker_url: str, *, result_url: str | None = None, public_keys: Iterable[str] | KeyList = ()
    ) -> None:
        keys = known_keys(public_keys)
        self._keys = keys if isinstance(public_keys, KeyList) or keys.keys else None
        self._broker = self._results = Server(broker_url, "the broker", "the service's Redis")
        if result_url is not None and result_url != broker_url:
            expected = "the Redis that the service's GRADER_RESULT_URL names"
            self._results = Server(result_url, "the results' Redis", expected)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections to both servers."""
        self._broker.redis.close()
        self._results.redis.close()

    def post(
        self,
        submission: str | Path | bytes | ArtifactMessage,
        *,
        lab: str,
        learner: str | None = None,
        cohort: str | None = None,
        submission_id: str | None = None,
        steps: Iterable[str] = (),
        queue: str = "live",
        filename: str | None = None,
        submitted_at: datetime | None = None,
        reply_to: ReplyTo | None = None,
        progress_to: ReplyTo | None = None,
        mode: Literal["grade", "preflight"] = "grade",
    ) -> str:
        """Posts one submission and returns its id. Posting the same again is safe: it is graded once.

        Args:
            submission: a path; the bytes themselves, with `filename`; or where more than 1 MiB lie (`uri`, `sha256`).
            lab: id of the lab.
            learner: opaque id of the learner; attempts and the hourly limit go by it, so give it always.
            cohort: course or group.
            submission_id: the platform's id, another one for each thing handed in; made up when not given.
            steps: ids of the steps to grade; all of the lab's when there are none.
            queue: `live` while a learner waits, `regrade` for bulk work.
            filename: the learner's name for it; a path's own when not given.
            submitted_at: when it was handed in, with a time zone.
            reply_to: queue and task to which the verdict is sent as well; the queue is in the results' Redis.
            progress_to: queue and task to which it is sent how far the grading is; the queue is there, too.
            mode: `preflight` has it looked at only, for an answer with `preflight` and no score.

        Raises:
            InvalidRequest: nothing was posted; the text names each problem.
            BrokerUnreachable: the results' Redis did not delete the earlier result, so nothing was posted; or the
                broker did not take the submission.
        """
        if queue not in _QUEUES:
            raise InvalidRequest(f"there is no queue {queue!r}; expected {' or '.join(_QUEUES)}")
        name = submission_id or f"{self._results.platform or 'client'}:{secrets.token_hex(8)}"
        message = {
            "submission_id": name,
            "lab": lab,
            "learner": learner,
            "cohort": cohort,
            "submitted_at": submitted_at.isoformat() if submitted_at else None,
            "artifact": _artifact(submission, filename).model_dump(exclude_none=True),
            "reply_to": reply_to.model_dump() if reply_to else None,
            "progress_to": progress_to.model_dump() if progress_to else None,
            "steps": list(steps),
            "mode": mode if mode != "grade" else None,
        }
        message = {field: value for field, value in message.items() if value is not None}
        try:
            parse_message(message)
        except Malformed as problem:
            raise InvalidRequest(f"this cannot be posted: {problem}") from None
        try:
            # Of an earlier post, such as that the queue was full then. Before the post, whose result may come at once.
            self._results.redis.delete(result_key(name))
        except RedisError as error:
            what = f"did not delete the earlier result of submission {name}, so nothing was posted"
            raise self._results.unreachable(what, error) from error
        try:
            self._broker.redis.lpush(queue, celery_message(name, queue, message))
        except RedisError as error:
            raise self._broker.unreachable(f"did not accept submission {name}", error) from error
        return name

    def wait(
        self,
        submission_id: str,
        timeout_s: float = 600.0,
        *,
        progress_queue: str | None = None,
        on_progress: Callable[[ProgressEvent], object] | None = None,
    ) -> ReceivedVerdict:
        """The verdict on a submission that a client posted, once it is there.

        It can be read for a day (or the service's GRADER_RESULT_DAYS); afterwards, post the same submission again.

        Args:
            submission_id: as `post` returned it.
            timeout_s: be generous: the queue may be long, and a run that fails through the service is tried again.
            progress_queue: that of `progress_to` when it was posted, where nobody else reads it; it is removed in the
                end.
            on_progress: called with what comes there meanwhile.

        Raises:
            TimedOut: it did not come in time.
            TryLater: the service did not take the submission for now.
            MessageRejected: the service cannot use the message.
            SignatureInvalid: none of `public_keys` signed it, or one that is not believed for its time.
            UnexpectedAnswer: what came is no verdict.
            BrokerUnreachable: the results' Redis does not answer; a moment's absence while it waits is passed over.
        """
        deadline = time.monotonic() + timeout_s
        with self._heard(progress_queue, on_progress) as pass_s:
            while True:
                away: RedisError | None = None
                try:
                    raw = self._results.redis.get(result_key(submission_id))
                except AuthenticationError as error:
                    raise self._results.unreachable("refuses the client", error) from error
                except (ConnectionError, TimeoutError) as error:
                    away, raw = error, None
                except RedisError as error:
                    raise self._results.unreachable("did not say whether there is a verdict", error) from error
                if isinstance(raw, bytes):
                    return self._taken(submission_id, raw)
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    if away is not None:
                        raise self._results.unreachable(f"did not answer within {timeout_s:g} s", away) from away
                    raise TimedOut(self._no_verdict(submission_id, timeout_s))
                pass_s(min(_LOOK_EVERY_S, left_s))

    @contextlib.contextmanager
    def _heard(
        self, queue: str | None, hear: Callable[[ProgressEvent], object] | None
    ) -> Iterator[Callable[[float], object]]:
        """What lets so many seconds pass, and hands on what comes in the queue meanwhile, if there is one."""
        if queue is None or hear is None:
            yield time.sleep
            return

        def listen(seconds: float) -> None:
            try:
                popped: Any = self._results.redis.brpop([queue], timeout=seconds)
            except RedisError:
                time.sleep(seconds)
                return
            if popped is not None:
                with contextlib.suppress(ValueError):
                    document = json.dumps(progress_of(popped[1]))
                    hear(ProgressEvent.model_validate_json(document, extra="ignore"))

        try:
            yield listen
        finally:
            bindings = (f"_kombu.binding{kind}.{queue}" for kind in ("", "_permanent"))
            with contextlib.suppress(RedisError):
                self._results.redis.delete(queue, *bindings)

    def grade(
        self,
        submission: str | Path | bytes | ArtifactMessage,
        *,
        lab: str,
        learner: str | None = None,
        cohort: str | None = None,
        submission_id: str | None = None,
        steps: Iterable[str] = (),
        filename: str | None = None,
        timeout_s: float = 600.0,
    ) -> ReceivedVerdict:
        """Posts a submission and waits for its verdict; see `post` and `wait`."""
        posted = self.post(
            submission,
            lab=lab,
            learner=learner,
            cohort=cohort,
            submission_id=submission_id,
            steps=steps,
            filename=filename,
        )
        return self.wait(posted, timeout_s)

    def _no_verdict(self, submission_id: str, timeout_s: float) -> str:
        text = (
            f"no verdict came within {timeout_s:g} s to {self._results.name} at {self._results.shown}; `grader status "
            f"{submission_id}` says where it is, on the service's side; wait again, or longer. A verdict that is older "
            "than a day (GRADER_RESULT_DAYS) comes when the same submission is posted again"
        )
        if self._results is self._broker:
            text += ". Where the service's GRADER_RESULT_URL names another Redis, give that one's URL as `result_url`"
        return text

    def _taken(self, submission_id: str, raw: bytes) -> ReceivedVerdict:
        try:
            verdict = ReceivedVerdict.read(result_of(raw))
        except ValueError as error:
            raise UnexpectedAnswer(
                f"the result of task {submission_id} is no verdict: {str(error)[:500]}. Is {self._results.shown} "
                "where the service keeps results, and do no other workers take messages from its queues?"
            ) from None
        if self._keys is not None:
            verify(verdict, self._keys)
        # Whoever may write to that Redis can put a genuine verdict on something else there.
        if verdict.submission_id != submission_id and verdict.code != _UNREADABLE:
            raise UnexpectedAnswer(
                f"the result of task {submission_id} is a verdict on {verdict.submission_id}; do not record it. Post "
                f"the same again for one on {submission_id}, and choose ids that others cannot guess"
            )
        if verdict.status is Status.REJECTED and verdict.code.startswith(_LATER):
            raise TryLater(verdict)
        if verdict.status is Status.REJECTED and verdict.code.startswith(_REFUSALS):
            raise MessageRejected(verdict)
        return verdict


def _artifact(submission: str | Path | bytes | ArtifactMessage, filename: str | None) -> ArtifactMessage:
    """What the message says of the artifact.

    Raises:
        InvalidRequest: no bytes, no name, or more than a message may carry.
    """
    if isinstance(submission, ArtifactMessage):
        return submission
    if isinstance(submission, bytes):
        data, name = submission, filename
    else:
        path = Path(submission)
        try:
            data, name = path.read_bytes(), filename or path.name
        except OSError as error:
            raise InvalidRequest(f"{path} cannot be read: {error}") from error
    if name is None:
        raise InvalidRequest("bytes came without `filename`; its ending says what they are, such as submission.ipynb")
    if len(data) > MAX_INLINE_BYTES:
        raise InvalidRequest(
            f"{name} has {len(data)} bytes; at most {MAX_INLINE_BYTES} go in a message. Put it where the service may "
            "fetch it (GRADER_ARTIFACT_SOURCES) and post ArtifactMessage(filename=…, uri=…, sha256=…)"
        )
    try:
        return ArtifactMessage(filename=name, inline=base64.b64encode(data).decode())
    except ValidationError as error:
        raise InvalidRequest(f"the file's name cannot be posted: {error.errors()[0]['msg']}, got {name!r}") from None
