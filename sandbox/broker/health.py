"""`python3 -m sandbox.broker.health SOCKET`: whether the pod broker on this socket, and its engine, answer.

For health checks of containers. It is called several times a minute, so that it imports next to nothing.
"""

import json
import socket
import sys
from pathlib import Path

from sandbox.short_path import socket_address

_TIMEOUT_S = 15.0


def main(path: str) -> int:
    """0 when they do; else 1, and says why not."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(_TIMEOUT_S)
            with socket_address(Path(path)) as address:
                connection.connect(address)
            connection.send(json.dumps({"ask": "look"}).encode())
            answer = json.loads(connection.recv(1 << 16) or b"{}")
    except (OSError, ValueError) as error:
        answer = {"why": f"the pod broker {path} does not answer: {error}"}
    if answer.get("answer") == "done":
        return 0
    sys.stdout.write(f"{answer.get('why', answer)}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
