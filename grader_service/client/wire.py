"""How a submission and its verdict lie in Redis: as Celery, protocol 2 in JSON, writes and reads them."""

import base64
import json
import uuid
from collections.abc import Mapping

from grader_service.service.message import TASK


def celery_message(task_id: str, queue: str, submission: Mapping[str, object]) -> bytes:
    """The message for `grader.grade` as it is pushed to the left end of the list with the queue's name."""
    body = json.dumps(
        [[], {"submission": submission}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}]
    )
    headers = {"lang": "py", "task": TASK, "id": task_id, "root_id": task_id, "parent_id": None, "group": None}
    properties = {
        "correlation_id": task_id,
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": queue},
        "delivery_tag": uuid.uuid4().hex,
        "priority": 0,
        "body_encoding": "base64",
    }
    return json.dumps(
        {
            "body": base64.b64encode(body.encode()).decode(),
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": headers,
            "properties": properties,
        }
    ).encode()


def progress_of(raw: bytes) -> Mapping[str, object]:
    """The argument `progress` of a message that the service put into a queue.

    Raises:
        ValueError: it is no such message.
    """
    try:
        kwargs = json.loads(base64.b64decode(json.loads(raw)["body"]))[1]
        progress = kwargs["progress"]
    except (LookupError, TypeError) as error:
        raise ValueError(f"expected a Celery message with the argument `progress`, got {raw[:200]!r}") from error
    if not isinstance(progress, Mapping):
        raise ValueError(f"expected an object as `progress`, got {raw[:200]!r}")  # noqa: TRY004 - as above
    return progress


def result_key(task_id: str) -> str:
    """Where the task's result is, once there is one."""
    return f"celery-task-meta-{task_id}"


def result_of(raw: bytes) -> Mapping[str, object]:
    """The verdict's document in a task's result.

    Raises:
        ValueError: it is not the result of a task that ended well.
    """
    answer = json.loads(raw)
    result = answer.get("result") if isinstance(answer, Mapping) and answer.get("status") == "SUCCESS" else None
    if not isinstance(result, Mapping):
        raise ValueError(f"expected a task that succeeded with a JSON object, got {raw[:200]!r}")  # noqa: TRY004
    return result
