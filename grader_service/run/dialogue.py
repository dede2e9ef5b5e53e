"""Talks with a pod: one request, one validated answer, and a named value for everything else that can happen."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from grader_service.errors import SandboxUnavailable
from grader_service.model.base import Few, LongText, ShortText, Wire
from grader_service.model.evidence import Ending
from sandbox.api import Pod
from sandbox.frames import Message

AnswerT = TypeVar("AnswerT", bound=Wire)


class Mark(Wire):
    """The timed part of a window begins."""

    kind: Literal["mark"]


class WindowDone(Wire):
    """The timed part of a window is over."""

    kind: Literal["window_done"]
    images: Annotated[int, Field(ge=0, le=2**40)]
    """Far beyond any real window, so that no rate that a learner's pod claims is outside of what a block can hold."""
    seconds: Annotated[float, Field(ge=0)] | None = None
    """By the pod's own clock. Only pods that run our code alone are asked for it, and believed."""


class Ready(Wire):
    """A trusted guest has imported what it needs."""

    kind: Literal["ready"]
    versions: Annotated[Mapping[str, ShortText], Few]


class Problem(Wire):
    """An arm cannot go on; the text is for the learner."""

    kind: Literal["arm_problem"]
    text: LongText


@dataclass(frozen=True)
class Stopped:
    """The pod ended instead of answering."""

    ending: Ending


@contextmanager
def awake(pod: Pod) -> Iterator[None]:
    """Lets a pod run that is frozen otherwise: nothing of one arm works while another one is timed."""
    pod.resume()
    try:
        yield
    finally:
        pod.pause()


def ask(
    pod: Pod,
    request: Mapping[str, object],
    blob: bytes = b"",
    *,
    timeout_s: float,
    meanwhile: Callable[[], None] | None = None,
) -> Message | Stopped:
    """Sends a request and waits for the next message, both within the host's time.

    Args:
        timeout_s: for sending, and again for the answer.
        meanwhile: is called once the pod has the request.
    """
    if (ending := pod.send(request, blob, timeout_s=timeout_s)) is not None:
        return Stopped(ending)
    if meanwhile is not None:
        meanwhile()
    return hear(pod, timeout_s)


def hear(pod: Pod, timeout_s: float) -> Message | Stopped:
    """The pod's next message."""
    message = pod.receive(timeout_s)
    return Stopped(message) if isinstance(message, Ending) else message


def parse(pod: Pod, message: Message | Stopped, *models: type[AnswerT]) -> AnswerT | Stopped:
    """The message as the one of these models that fits; a pod that says anything else is ended."""
    if isinstance(message, Stopped):
        return message
    by_kind = {model.model_fields["kind"].annotation.__args__[0]: model for model in models}  # type: ignore[union-attr]
    model = by_kind.get(str(message.body.get("kind")))
    if model is None:
        return Stopped(pod.reject(f"message {str(message.body.get('kind'))[:60]!r}; expected {', '.join(by_kind)}"))
    try:
        return model.model_validate(message.body)
    except ValidationError as error:
        return Stopped(pod.reject(f"malformed {model.__name__}: {str(error)[:1500]}"))


def trusted(answer: AnswerT | Stopped, pod: Pod) -> AnswerT:
    """The answer of a pod that runs only our code on our data; anything else is our failure.

    Raises:
        SandboxUnavailable: the pod ended.
    """
    if isinstance(answer, Stopped):
        record = pod.end()
        raise SandboxUnavailable(
            f"the {record.role.value} pod ended ({answer.ending.value}, exit code {record.exit_code}): "
            f"{record.detail} {record.log_tail[-1500:]}"
        )
    return answer
