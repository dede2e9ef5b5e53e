"""`python3 -m sandbox.broker.health SOCKET`: whether the pod broker on this socket, and its engine, answer."""

import sys
from pathlib import Path

from grader_service.errors import SandboxUnavailable
from sandbox.broker import wire
from sandbox.broker.client import Line


def main(path: str) -> int:
    """0 when they do; else 1, and says why not."""
    try:
        with Line(Path(path)) as line:
            line.call(wire.Look(), wire.Done)
    except SandboxUnavailable as error:
        sys.stdout.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
