"""A Docker engine for the tests: the one that runs, else a private one from the distribution's packages."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.postgres_server import binaries

Say = Callable[[str], None]
RUN_DIR = Path("/run/grader-test")
DATA_DIR = Path("/var/lib/grader-test/docker")
_PACKAGES = {
    "dockerd": "docker.io",
    "crun": "crun",
    "debootstrap": "debootstrap",
    "redis-server": "redis-server",
    "docker-compose": "docker-compose",
    "docker-registry": "docker-registry",
    "node": "nodejs",
    "npm": "npm",
    "php": "php-cli",
    "promtool": "prometheus",
}
_PHP_REDIS = "php-redis"
_BROWSER = ("chromium", "chromium")
"""Program and package; Ubuntu has it as a snap only, so its absence is left to the tests that need it."""
_START_S = 60
_CRUN = """#!/bin/sh
exec unshare --mount --propagation slave sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec crun "$@"' crun "$@"
"""
"""crun refuses hosts with control groups of both versions that have controllers in the second: it does not see that."""


def missing_packages() -> str | None:
    """What the tests need and cannot get by themselves; None when they have or can install everything."""
    if _reachable({}) or _can_install():
        return None
    lacking = _lacking()
    return (
        "no Docker engine answers and none can be installed here (that needs root on Debian or Ubuntu): install "
        f"{', '.join(lacking) or 'and start docker.io'}, start dockerd, and run `make test` again"
    )


@contextmanager
def ensure_engine(say: Say) -> Iterator[dict[str, str]]:
    """Yields the environment that names the engine; stops a private engine at the end."""
    if _can_install():
        _install(say)
    if _reachable({}):
        yield {}
        return
    environment = {"DOCKER_HOST": f"unix://{RUN_DIR}/docker.sock"}
    if _reachable(environment):
        yield environment
        return
    process = _start(say)
    try:
        _await(environment, process)
        yield environment
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def _can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install(say: Say) -> None:
    needed = _lacking()
    if binaries() is None:
        needed.append("postgresql")
    browser = [] if shutil.which(_BROWSER[0]) else [_BROWSER[1]]
    if not needed and not browser:
        return
    say(f"installing {', '.join(needed + browser)} from the distribution's packages")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    install = ["apt-get", "-qq", "install", "-y", "--no-install-recommends"]
    _apt(["apt-get", "-qq", "update"], environment)
    if needed:
        _apt([*install, *needed], environment)
    if browser:
        subprocess.run([*install, *browser], check=False, env=environment, capture_output=True)


def _lacking() -> list[str]:
    """Packages of programs that are not there, and PHP's extension, which is no program."""
    lacking = [package for program, package in _PACKAGES.items() if shutil.which(program) is None]
    if not any(Path("/etc/php").glob("*/cli/conf.d/*redis.ini")):
        lacking.append(_PHP_REDIS)
    return lacking


def _apt(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")


def _start(say: Say) -> "subprocess.Popen[bytes]":
    """A private engine: its own socket, data and process files, and no change to the host's network."""
    say(f"starting a private Docker engine at {RUN_DIR}/docker.sock (data in {DATA_DIR})")
    for folder in (RUN_DIR, DATA_DIR):
        folder.mkdir(parents=True, exist_ok=True)
    crun = RUN_DIR / "crun"
    crun.write_text(_CRUN)
    crun.chmod(0o755)
    command = [
        "dockerd", "--host", f"unix://{RUN_DIR}/docker.sock", "--data-root", str(DATA_DIR),
        "--exec-root", str(RUN_DIR / "exec"), "--pidfile", str(RUN_DIR / "docker.pid"),
        "--bridge", "none", "--iptables=false", "--ip6tables=false",
        "--add-runtime", f"crun={crun}",
    ]  # fmt: skip
    (RUN_DIR / "docker.pid").unlink(missing_ok=True)
    with (RUN_DIR / "docker.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)


def _await(environment: dict[str, str], process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _START_S
    while not _reachable(environment):
        if process.poll() is not None or time.monotonic() > deadline:
            tail = (RUN_DIR / "docker.log").read_text(errors="replace")[-3000:]
            raise SystemExit(f"the private Docker engine did not start:\n{tail}")
        time.sleep(0.3)


def _reachable(environment: dict[str, str]) -> bool:
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=10, environment={**os.environ, **environment})
        return bool(client.ping())
    except DockerException:
        return False
