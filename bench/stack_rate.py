"""Gradings a second through the service as `make up` starts it: posted over its queue, graded in containers, answered.

    python bench/stack_rate.py [--gradings 1000] [--runners 2] [--warm-runs 1] [--save rate.json]

Starts a project of its own with a state folder, ports and secrets of its own, and as many runners as are wanted, and
removes all of it afterwards. A warm-up first; then all submissions are posted at once, each of another learner, and
every verdict is waited for. Printed: the rate from the first post to the last verdict, the same of each quarter, what
the runners hold of memory at the beginning and at the end, and what of the host's processors went to which service;
the rest is the engine's, the pods' and whoever else is on the host.

Exit status 1 when a submission got no verdict or another one than `passed`, when the service made more verdicts or
runs than there were submissions, or when a runner has grown by more than 10 MiB over the last three quarters.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import docker
import psutil
import yaml
from long_run import grown
from trivial import SOURCE

from grader_service.client import Client

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.services.kept_port import kept_port

ROOT = Path(__file__).resolve().parents[1]
MOST_GROWTH_MIB = 10.0
_WARM_UP = 40
_READY_S = 180.0
_WAIT_S = 1800.0
_METRICS_S = 15.0
"""How old the figures of `grader metrics` may be."""


class Stack:
    """The service with some runners, under a name of its own."""

    def __init__(self, folder: Path, runners: int, warm_runs: int) -> None:
        self.name = f"rate{os.getpid()}"
        self._folder = folder
        self._ports = contextlib.ExitStack()
        ports = (self._ports.enter_context(kept_port()) for _ in range(4))
        self.redis_port, self.result_port, self.metrics_port, web_port = ports
        self.secrets = folder / "secrets"
        service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["runner"]
        more = {f"runner{n}": {**service, "command": ["worker", "run", "--slot", str(n)]} for n in range(1, runners)}
        override = folder / "runners.yaml"
        override.write_text(yaml.safe_dump({"services": more}) if more else "services: {}\n")
        self.runners = ["runner", *more]
        self._environment = {
            **os.environ,
            "COMPOSE_FILE": f"{ROOT / 'compose.yaml'}:{override}",
            "GRADER_PROJECT": self.name,
            "GRADER_RUNNER_NAME": self.name,
            "GRADER_STATE_DIR": str(folder / "state"),
            "GRADER_SECRETS_DIR": str(self.secrets),
            "GRADER_REDIS_PORT": str(self.redis_port),
            "GRADER_RESULT_PORT": str(self.result_port),
            "GRADER_METRICS_PORT": str(self.metrics_port),
            "GRADER_WEB_PORT": str(web_port),
            "GRADER_WARM_RUNS": str(warm_runs),
        }

    def start(self) -> None:
        """Starts everything and waits until every worker is ready."""
        self._run("images/up.sh")
        deadline = time.monotonic() + _READY_S
        doctor = ["exec", "judge", "python3", "-m", "grader_service", "doctor", "--service"]
        while self._run("images/compose.sh", *doctor, check=False).returncode:
            if time.monotonic() > deadline:
                raise SystemExit(self._run("images/compose.sh", "logs", "--tail", "20").stdout)
            time.sleep(1.0)

    def client(self) -> Client:
        """Of a platform on this host."""
        password = (self.secrets / "redis_password").read_text().strip()
        broker, results = (f"redis://:{password}@127.0.0.1:{port}/0" for port in (self.redis_port, self.result_port))
        return Client(broker, result_url=results)

    def counted(self, metric: str) -> dict[str, float]:
        """Samples of a metric, by their labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        samples = (line.rpartition(" ") for line in lines if line.startswith((metric + "{", metric + " ")))
        return {labels.removeprefix(metric): float(value) for labels, _, value in samples}

    def memory_mib(self, engine: docker.DockerClient) -> dict[str, float]:
        """What each runner holds, without pages of files that the kernel may drop."""
        held = {}
        for name in self.runners:
            (container,) = engine.containers.list(
                filters={"label": [f"com.docker.compose.project={self.name}", f"com.docker.compose.service={name}"]}
            )
            used = container.stats(stream=False)["memory_stats"]
            files = used["stats"].get("inactive_file", used["stats"].get("total_inactive_file", 0))
            held[name] = (used["usage"] - files) / (1 << 20)
        return held

    def processor_s(self, engine: docker.DockerClient) -> dict[str, float]:
        """Processor time of each service so far, and of everything on this host."""
        used = {}
        for container in engine.containers.list(filters={"label": f"com.docker.compose.project={self.name}"}):
            name = container.labels["com.docker.compose.service"]
            used[name] = container.stats(stream=False)["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9
        times = psutil.cpu_times()
        return used | {"the host": sum(times) - times.idle - times.iowait}

    def stop(self) -> None:
        """Removes containers, volumes and folders."""
        self._run("images/compose.sh", "down", "--volumes", "--timeout", "60", check=False)
        self._ports.close()

    def _run(self, *command: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise SystemExit(
                f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        return done


class Watch:
    """Looks at the runners' memory in a thread, for the length of the block."""

    def __init__(self, stack: Stack, every_s: float = 5.0) -> None:
        self.points: list[tuple[float, dict[str, float]]] = []
        self._stack = stack
        self._every_s = every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def grown(self) -> dict[str, float]:
        """By runner, MiB; see `long_run.grown`."""
        return {name: grown([held[name] for _, held in self.points]) for name in self._stack.runners}

    def _look(self) -> None:
        engine = docker.from_env()
        since = time.monotonic()
        while not self._ended.wait(self._every_s):
            self.points.append((time.monotonic() - since, self._stack.memory_mib(engine)))


def main() -> int:
    """Prints what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--gradings", type=int, default=1000)
    parser.add_argument("--runners", type=int, default=2)
    parser.add_argument("--warm-runs", type=int, default=1)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    engine = docker.from_env()
    with started(options.runners, options.warm_runs) as stack, stack.client() as client:
        graded(client, "warm-up", _WARM_UP)
        with Watch(stack) as watch:
            before = stack.processor_s(engine)
            times, statuses = graded(client, "rate", options.gradings)
            after = stack.processor_s(engine)
        time.sleep(_METRICS_S)
        verdicts = sum(stack.counted("grader_verdicts_total").values())
        runs = stack.counted("grader_runs")
    wall_s = times[-1]
    quarter = len(times) // 4
    print(f"{options.gradings} gradings in {wall_s:.1f} s: {options.gradings / wall_s:.2f} a second, {dict(statuses)}")
    ends = [times[(n + 1) * quarter - 1] for n in range(4)]
    rates = [quarter / (end - begin) for begin, end in zip([0.0, *ends], ends, strict=False)]
    print("by quarters: " + ", ".join(f"{rate:.2f}" for rate in rates))
    first, last = watch.points[0][1], watch.points[-1][1]
    print("memory: " + ", ".join(f"{name} {first[name]:.0f} to {last[name]:.0f} MiB" for name in stack.runners))
    more = watch.grown()
    print("grown: " + ", ".join(f"{name} {mib:+.1f} MiB" for name, mib in more.items()))
    used = {name: (after[name] - before[name]) / options.gradings for name in before}
    print("processor s a grading: " + ", ".join(f"{name} {s:.3f}" for name, s in sorted(used.items()) if s >= 0.001))
    if options.save is not None:
        options.save.write_text(json.dumps({"times_s": times, "memory": watch.points, "statuses": statuses}))
    expected = options.gradings + _WARM_UP
    wrong = [] if set(statuses) == {"passed"} else [f"statuses: {dict(statuses)}"]
    if verdicts != expected:
        wrong.append(f"{verdicts:.0f} verdicts of {expected} submissions")
    if sum(runs.values()) != expected or any(count and "done" not in labels for labels, count in runs.items()):
        wrong.append(f"runs: {runs}")
    wrong += [f"{name} has grown by {mib:.1f} MiB" for name, mib in more.items() if mib > MOST_GROWTH_MIB]
    print("\n".join(wrong) or "none lost, none twice, memory flat")
    return int(bool(wrong))


@contextlib.contextmanager
def started(runners: int, warm_runs: int) -> Iterator[Stack]:
    """A stack that is ready; removed with the block."""
    folder = Path(tempfile.mkdtemp(prefix="grader-rate-", dir="/var/tmp"))
    stack = Stack(folder, runners, warm_runs)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()
        shutil.rmtree(folder, ignore_errors=True)


def graded(client: Client, name: str, count: int) -> tuple[list[float], Counter[str]]:
    """Posts so many and waits for all: seconds until each verdict was seen, in their order, and the statuses."""
    since = time.monotonic()
    ids = [
        client.post(
            SOURCE.encode(),
            filename="submission.py",
            lab="dali-pipelines",
            learner=f"{name}-{number}",
            submission_id=f"{name}:{number}",
            steps=["reflection"],
        )
        for number in range(count)
    ]
    times, statuses = [], Counter[str]()
    for number, submission_id in enumerate(ids):
        statuses[client.wait(submission_id, _WAIT_S).status] += 1
        times.append(time.monotonic() - since)
        sys.stderr.write(f"\r{name}: {number + 1} of {count}, {(number + 1) / times[-1]:.2f} a second   ")
    sys.stderr.write("\n")
    return times, statuses


if __name__ == "__main__":
    sys.exit(main())
