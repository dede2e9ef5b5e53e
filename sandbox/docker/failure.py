"""What a failed engine call means: pure, and partial on purpose.

Engines report by HTTP status and by English text. Only texts that were seen on real engines stand here; anything
else stays `SandboxUnavailable`, which is ours and costs nobody an attempt.
"""

from collections.abc import Sequence

_ALREADY_SO = ("no such container", "is not running", "is not paused", "is already paused")
_HINTS: Sequence[tuple[str, str]] = (
    ("no such image", "the lab image is not on this host: run `grader images build`"),
    ("not found: manifest", "the lab image is not on this host: run `grader images build`"),
    ("could not select device driver", "the engine cannot give out GPUs: run `grader doctor`"),
    ("unknown runtime specified", "the engine cannot give out GPUs: run `grader doctor`"),
    ("gathering device information", "a device node of the GPU is missing: run `grader doctor`"),
    (
        "unresolvable cdi devices",
        "the engine's CDI specification does not know this GPU: run `grader doctor`",
    ),
    (
        "bind source path does not exist",
        "the engine must see the state folder and the lab's data under the same paths as the grader: where the grader "
        "runs in a container, mount them at their host's paths",
    ),
    ("no space left on device", "the engine's disk is full: remove unused images and containers"),
    # PermissionError is the Python client's word, the other one that of the command line.
    ("permissionerror(13", "this user may not use the Docker socket: add it to group docker"),
    (
        "permission denied while trying to connect",
        "this user may not use the Docker socket: add it to group docker",
    ),
    ("connection refused", "the Docker engine does not answer: start it and run `grader doctor`"),
    ("filenotfounderror(2", "the Docker engine's socket is missing: start it and run `grader doctor`"),
    ("failed to resolve", "DOCKER_HOST names a host that cannot be found: correct or unset it"),
    ("bind address format", "DOCKER_HOST is no address of an engine: correct or unset it"),
    ("could not be cast", "DOCKER_HOST is no address of an engine: correct or unset it"),
    ("timed out", "the engine is overloaded or hangs: look at its log, restart it if need be"),
)


def already_so(message: str) -> bool:
    """Whether a failed kill, pause or resume failed because the container was in that state already, or is gone."""
    lowered = message.lower()
    return any(text in lowered for text in _ALREADY_SO)


def hint(message: str) -> str:
    """What an operator should do about this failure of the engine; empty when nobody can tell from the text."""
    lowered = message.lower()
    return next((advice for text, advice in _HINTS if text in lowered), "")
