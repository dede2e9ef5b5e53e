"""What a runner asks of the pod broker, and what it is answered: one JSON document in each packet of a Unix socket.

Nothing here is the engine's: no mount, no option, no name of a container. A connection holds one thing at most, a run
space or a pod, and what it asks is about that; when it ends, so does the thing.
"""

import socket
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import Field, StringConstraints, TypeAdapter

from grader_service.model.base import Frozen
from grader_service.model.evidence import PodRole
from sandbox.api import SandboxFacts, Scratch

MOST_BYTES = 128 << 10
"""Of a packet: less than what the kernel takes at once."""
MOST_LOG_CHARS = 8000
MOST_LEFT = 100

Image = Annotated[str, StringConstraints(min_length=1, max_length=300)]
Token = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Program = Annotated[str, StringConstraints(pattern=r"^[a-z_]+(\.[a-z_]+)*$", max_length=100)]
Modules = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*(,[A-Za-z_][A-Za-z0-9_.]*)*$", max_length=500)
]
RunId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$")]
Some = Annotated[int, Field(ge=1)]


class TellFacts(Frozen):
    """What pods of an image run in."""

    ask: Literal["facts"] = "facts"
    image: Image
    """By its name."""


class Look(Frozen):
    """Whether the engine, and an image, are there."""

    ask: Literal["look"] = "look"
    image_id: Image | None = None


class Order(Frozen):
    """What needs no more words: what earlier brokers left behind is removed, or the thing of this connection is told.

    A run space can be closed. Of a pod it is asked whether it is there, it is frozen and thawed, tells what it has
    written so far, and is killed and removed.
    """

    ask: Literal["sweep", "close", "alive", "pause", "resume", "output", "destroy"]


class Limits(Frozen):
    """As `SpaceLimits`."""

    workspace_mib: Some
    workspace_inodes: Some
    shm_mib: Some


class Open(Frozen):
    """A run space, for as long as the connection holds it."""

    ask: Literal["open"] = "open"
    run_id: RunId
    image_id: Image
    limits: Limits


class PodAsked(Frozen):
    """As `PodSpec`."""

    role: PodRole
    program: Program
    memory_mib: Some
    pids: Some
    cpus: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1, max_length=4096)]
    shm_mib: Some
    scratch: Scratch
    submission: bool
    shards: bool
    gpu: bool
    environment: dict[Literal["GRADER_AHEAD"], Modules]
    """Only what code of ours puts there: modules that a pod imports while it waits."""


class Start(Frozen):
    """A pod of a run space, for as long as the connection holds it."""

    ask: Literal["start"] = "start"
    space: Token
    """What the run space's own connection was told."""
    pod: PodAsked


Request: TypeAlias = TellFacts | Look | Open | Start | Order


class Done(Frozen):
    """It was done."""

    answer: Literal["done"] = "done"


class Failed(Frozen):
    """The engine failed, or something is missing; asking again may help."""

    answer: Literal["failed"] = "failed"
    why: str


class Refused(Frozen):
    """It is not allowed; the broker ends the connection."""

    answer: Literal["refused"] = "refused"
    why: str


class Facts(Frozen):
    """What pods of an image run in, and where run folders lie."""

    answer: Literal["facts"] = "facts"
    facts: SandboxFacts
    image_id: str
    lab_data: str | None
    """Folder of the host that pods find the lab's data in."""
    runs: str
    """Folder with a folder for each run space, named by its id: the same path for runner and broker."""


class Swept(Frozen):
    """What a sweep did."""

    answer: Literal["swept"] = "swept"
    removed: int
    left: Annotated[tuple[RunId, ...], Field(max_length=MOST_LEFT)]
    """Runs that ended, and whose submission or shards still hold what the runner wrote, and must remove."""


class Opened(Frozen):
    """The run space is there."""

    answer: Literal["opened"] = "opened"
    space: Token


class Started(Frozen):
    """The pod was started; with it comes the descriptor of the socket on which its guest connects."""

    answer: Literal["started"] = "started"


class Living(Frozen):
    """Whether it is alive."""

    answer: Literal["living"] = "living"
    alive: bool


class Wrote(Frozen):
    """The last of what a pod has written so far."""

    answer: Literal["wrote"] = "wrote"
    output: Annotated[str, StringConstraints(max_length=MOST_LOG_CHARS)]


class Ended(Frozen):
    """As `ContainerEnd`."""

    answer: Literal["ended"] = "ended"
    exit_code: int | None
    oom_killed: bool
    log_tail: Annotated[str, StringConstraints(max_length=MOST_LOG_CHARS)]


Answer: TypeAlias = Done | Failed | Refused | Facts | Swept | Opened | Started | Living | Wrote | Ended

_REQUEST: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="ask")])
_ANSWER: TypeAdapter[Answer] = TypeAdapter(Annotated[Answer, Field(discriminator="answer")])


_T = TypeVar("_T")


class Unreadable(ValueError):
    """A packet is no request, or no answer."""


def make_socket() -> socket.socket:
    """A Unix socket that keeps packets apart."""
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(connection: socket.socket, message: Request | Answer, *given: socket.socket) -> None:
    """Sends one packet, and the descriptors of these sockets with it.

    Raises:
        OSError: the other end is gone, or does not read in time.
    """
    socket.send_fds(connection, [message.model_dump_json().encode()], [one.fileno() for one in given])


def receive_request(connection: socket.socket) -> Request | None:
    """The next request; None when the other end has closed the connection. Descriptors that come along are dropped.

    Raises:
        Unreadable: what came is no request.
        OSError: the connection broke, or nothing came in time.
    """
    text, _, flags, _ = connection.recvmsg(MOST_BYTES)
    return _read(_REQUEST, text, flags) if text else None


def receive_answer(connection: socket.socket) -> tuple[Answer | None, socket.socket | None]:
    """The next answer, and the socket that came with it; no answer when the other end has closed the connection.

    Raises:
        Unreadable: what came is no answer.
        OSError: the connection broke, or nothing came in time.
    """
    text, descriptors, flags, _ = socket.recv_fds(connection, MOST_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
    given = socket.socket(fileno=descriptors[0]) if descriptors else None
    try:
        return (_read(_ANSWER, text, flags) if text else None), given
    except Unreadable:
        if given is not None:
            given.close()
        raise


def _read(adapter: TypeAdapter[_T], text: bytes, flags: int) -> _T:
    if flags & socket.MSG_TRUNC:
        raise Unreadable(f"a packet of more than {MOST_BYTES} bytes")
    try:
        return adapter.validate_json(text)
    except ValueError as error:
        raise Unreadable(str(error)[:1000]) from error
