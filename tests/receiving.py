"""Takes a single message in, as an intake does several at a time."""

from grader_service.service.intake import IntakeDeps, Taken, receive_all


def receive(deps: IntakeDeps, body: object, purpose: str, task_id: str | None) -> Taken:
    """What became of it."""
    return receive_all(deps, [(body, task_id)], purpose)[0]
