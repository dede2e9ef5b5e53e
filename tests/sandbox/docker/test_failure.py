"""Texts of an engine (20.10) and its Python client as they came, and what they mean.

Those about a full disk and about CDI are quoted: this project's engine could not be made to say them.
"""

import pytest

from sandbox.docker.failure import already_so, hint

ID = "97591bc267317fb9a3083a308292b916483e083832b60ca0f796703fd7e4ec11"
URL = "for http+docker://localhost/v1.41/containers"

HINTS = [
    (
        '404 Client Error for http+docker://localhost/v1.41/images/grader-nope/json: Not Found ("no such image: '
        'grader-nope: No such image: grader-nope:latest")',
        "grader images build",
    ),
    (
        "Error while fetching server API version: ('Connection aborted.', FileNotFoundError(2, 'No such file or "
        "directory'))",
        "socket is missing",
    ),
    (
        "Error while fetching server API version: ('Connection aborted.', ConnectionRefusedError(111, 'Connection "
        "refused'))",
        "does not answer",
    ),
    (
        "Error while fetching server API version: HTTPConnectionPool(host='127.0.0.1', port=1): Max retries exceeded "
        "with url: /version (Caused by NewConnectionError(\"HTTPConnection(host='127.0.0.1', port=1): Failed to "
        'establish a new connection: [Errno 111] Connection refused"))',
        "does not answer",
    ),
    (
        "Error while fetching server API version: HTTPConnectionPool(host='nosuchhost.invalid', port=2375): Max "
        "retries exceeded with url: /version (Caused by NameResolutionError(\"HTTPConnection(host='nosuchhost.invalid',"
        " port=2375): Failed to resolve 'nosuchhost.invalid' ([Errno -2] Name or service not known)\"))",
        "DOCKER_HOST names a host that cannot be found",
    ),
    (
        "Error while fetching server API version: ('Connection aborted.', PermissionError(13, 'Permission denied'))",
        "group docker",
    ),
    (
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        "group docker",
    ),
    (
        f"500 Server Error {URL}/{ID}/start: Internal Server Error "
        '("could not select device driver "cdi" with capabilities: []")',
        "cannot give out GPUs",
    ),
    (
        f'400 Client Error {URL}/create?name=x: Bad Request ("Unknown runtime specified nvidia")',
        "cannot give out GPUs",
    ),
    (
        f'500 Server Error {URL}/{ID}/start: Internal Server Error ("error gathering device information while adding '
        'custom device "/dev/nvidia0": no such file or directory")',
        "device node of the GPU is missing",
    ),
    (
        f"500 Server Error {URL}/{ID}/start: Internal Server Error "
        '("CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=7")',
        "CDI specification does not know this GPU",
    ),
    (
        f'400 Client Error {URL}/create?name=x: Bad Request ("invalid mount config for type "bind": bind source path '
        'does not exist: /var/lib/grader/runs/ab/code")',
        "under the same paths",
    ),
    (
        f'500 Server Error {URL}/create: Internal Server Error ("mkdir /var/lib/docker/overlay2/ab: no space left on '
        'device")',
        "disk is full",
    ),
    ("UnixHTTPConnectionPool(host='localhost', port=None): Read timed out. (read timeout=60)", "overloaded or hangs"),
    ("Invalid bind address format: port is required: nonsense", "correct or unset it"),
    ("Port could not be cast to integer value as 'notaport'", "correct or unset it"),
]

UNKNOWN = [
    # A path that is missing in the image, not the engine's socket.
    f'400 Client Error {URL}/{ID}/start: Bad Request ("failed to create shim task: OCI runtime create failed: runc '
    'create failed: unable to start container process: exec: "/nonexistent": stat /nonexistent: no such file or '
    'directory: unknown")',
    f'400 Client Error {URL}/create?name=x: Bad Request ("Minimum memory limit allowed is 6MB")',
    # Until the removal is done, its volumes are in use.
    f'409 Client Error {URL}/{ID}?v=True: Conflict ("removal of container {ID} is already in progress")',
    "",
    "something that nobody has seen",
]

ALREADY_SO = [
    f'409 Client Error {URL}/{ID}/kill: Conflict ("Cannot kill container: {ID}: Container {ID} is not running")',
    f'409 Client Error {URL}/{ID}/pause: Conflict ("Container {ID} is not running")',
    f'409 Client Error {URL}/{ID}/pause: Conflict ("Container {ID} is already paused")',
    f'500 Server Error {URL}/{ID}/unpause: Internal Server Error ("Container {ID} is not paused")',
    f'404 Client Error {URL}/{ID}/kill: Not Found ("Cannot kill container: {ID}: No such container: {ID}")',
]


@pytest.mark.parametrize(("message", "advice"), HINTS)
def test_known_failures_come_with_advice(message, advice):
    """What an operator should do."""
    assert advice in hint(message)


@pytest.mark.parametrize("message", UNKNOWN)
def test_unknown_failures_come_without(message):
    """Wrong advice is worse than none."""
    assert hint(message) == ""


@pytest.mark.parametrize("message", ALREADY_SO)
def test_nothing_was_left_to_do(message):
    """The container is in that state already, or gone."""
    assert already_so(message)


@pytest.mark.parametrize("message", [*(message for message, _ in HINTS), *UNKNOWN])
def test_other_failures_are_failures(message):
    """None of them is taken for a container that has ended."""
    assert not already_so(message)
