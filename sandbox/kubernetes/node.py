"""Puts the seccomp profile where a node's kubelet finds it: what a runner's pod does before its runner starts.

python -m sandbox.kubernetes.node FOLDER        such as /var/lib/kubelet/seccomp
"""

import os
import sys
from pathlib import Path

from sandbox.kubernetes.manifests import seccomp_path
from sandbox.seccomp import profile_text


def install_profile(folder: Path) -> Path:
    """Writes the profile below the kubelet's folder, whole or not at all; returns its path.

    Raises:
        OSError: the folder cannot be written to.
    """
    path = folder / seccomp_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(profile_text())
    part.chmod(0o644)
    part.replace(path)
    return path


if __name__ == "__main__":
    print(install_profile(Path(sys.argv[1])))  # noqa: T201
