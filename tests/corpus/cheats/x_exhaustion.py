"""X: exhaustion of processes, memory, scratch, log and time."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from unittest.mock import patch

import psutil

from grader_service.grading import learner
from sandbox.docker_engine import ContainerVessel
from sandbox.pod import VesselEnd
from tests.corpus.case import Cheat, Observed, Procedure
from tests.corpus.parts_containment import CONTAINED, Attempt
from tests.corpus.world import World

_PATIENCE_S = 20.0
_KEPT = 1 << 20
"""More of a pod's output than that is no capped log."""


@contextlib.contextmanager
def _soon(_: World) -> Iterator[Mapping[str, str]]:
    """The host waits two seconds instead of sixty for what was interrupted softly."""
    with patch.object(learner, "COLLECT_S", 2.0):
        yield {}


def _flood(world: World) -> Observed:
    """Counts what the engine kept of a pod's output when the pod ended."""
    kept: list[int] = []
    destroy = ContainerVessel.destroy

    def counted(vessel: ContainerVessel) -> VesselEnd:
        kept.append(len(vessel._container.logs()))
        return destroy(vessel)

    script = """
    for _ in range(256):
        os.write(1, b"x" * 65536)
    """
    with patch.object(ContainerVessel, "destroy", counted):
        observed = Attempt(script)(world)
    if max(kept) > _KEPT:
        return Observed("passed", "pod.kept_all_output", f"{max(kept)} bytes")
    return observed


def _daemon(world: World) -> Observed:
    """Looks on the host for what a pod left running."""
    token = f"corpus-daemon-{time.time_ns():x}"
    script = f"""
    import signal

    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(120)", "{token}"])
        os._exit(0)
    os.wait()
    time.sleep(0.3)
    """
    observed = Attempt(script)(world)
    left = [one.pid for one in psutil.process_iter(["cmdline"]) if token in (one.info["cmdline"] or [])]
    return Observed("passed", "pod.outlived", f"{left}") if left else observed


CASES = (
    Procedure(
        id="X01-processes",
        title="300 processes where 64 are allowed",
        play=Attempt(
            """
            def bomb():
                for _ in range(300):
                    if os.fork() == 0:
                        time.sleep(120)
                        os._exit(0)
                return True


            attempt("300 processes", bomb)
            """,
            limits={"pids": 64},
        ),
        codes=(CONTAINED,),
    ),
    Procedure(
        id="X01-threads",
        title="300 threads where 64 are allowed",
        play=Attempt(
            """
            import threading


            def bomb():
                for _ in range(300):
                    threading.Thread(target=time.sleep, args=(120,), daemon=True).start()
                return True


            attempt("300 threads", bomb)
            """,
            limits={"pids": 64},
        ),
        codes=(CONTAINED,),
    ),
    Procedure(
        id="X02-memory",
        title="700 MiB of memory where 512 are allowed",
        play=Attempt(
            """
            def hog():
                block = bytearray(700 << 20)
                block[::4096] = b"x" * len(block[::4096])
                return True


            attempt("700 MiB", hog)
            """,
            limits={"memory_mib": 512},
        ),
        codes=("pod.out_of_memory",),
    ),
    Procedure(
        id="X02-child",
        title="a child that takes the memory and is killed for it, while its parent goes on",
        play=Attempt(
            """
            child = os.fork()
            if child == 0:
                block = bytearray(700 << 20)
                block[::4096] = b"x" * len(block[::4096])
                os._exit(0)
            attempt("700 MiB", lambda: os.waitpid(child, 0)[1] == 0)
            """,
            limits={"memory_mib": 512},
        ),
        codes=(CONTAINED,),
    ),
    Procedure(
        id="X02-scratch",
        title="96 MiB in each folder of 64 MiB, all left full",
        play=Attempt(
            """
            def fill(folder):
                with open(f"{folder}/full", "wb", buffering=0) as file:
                    for _ in range(96):
                        if file.write(bytes(1 << 20)) != 1 << 20:
                            return False
                return True


            for folder in ("/workspace", "/tmp", "/dev/shm"):
                attempt(folder, lambda: fill(folder))
            """,
            limits={"workspace_mib": 64, "shm_mib": 64},
        ),
        codes=(CONTAINED,),
    ),
    Procedure(
        id="X02-inodes",
        title="3,000 empty files where 1,000 are allowed",
        play=Attempt(
            """
            def litter():
                for number in range(3000):
                    open(f"/workspace/{number}", "wb").close()
                return True


            attempt("3,000 files", litter)
            """,
            limits={"workspace_inodes": 1000},
        ),
        codes=(CONTAINED,),
    ),
    Procedure(
        id="X02-elsewhere",
        title="files outside the scratch, where no limit would count them",
        play=Attempt(
            """
            ours = ("/workspace", "/tmp", "/dev/shm", "/dev/mqueue", "/proc", "/sys")


            def write(folder):
                with open(f"{folder}/corpus-was-here", "wb") as file:
                    file.write(b"x")
                return True


            folders = [folder for folder, *_ in os.walk("/") if not folder.startswith(ours) and folder.count("/") < 4]
            for folder in folders:
                try:
                    if write(folder):
                        got.append(folder)
                except OSError:
                    pass
            """
        ),
        codes=(CONTAINED,),
    ),
    Cheat(
        id="X02-sparse",
        title="a hundred files that begin as JPEGs and claim a terabyte each",
        content="""
            import os
            import numpy as np
            from PIL import Image

            dataset_dir = "dataset"
            os.makedirs(dataset_dir)
            noise = np.random.default_rng(1)
            for number in range(100):
                path = f"{dataset_dir}/{number}.jpg"
                Image.fromarray(noise.integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(path)
                os.truncate(path, 1 << 40)
            pytorch_throughput = 100.0
        """,
        steps=("baseline",),
        target="jpeg_dataset",
        codes=("jpeg.too_few",),
    ),
    Procedure(
        id="X03-flood",
        title="16 MiB of output without a line's end",
        play=_flood,
        codes=(CONTAINED,),
    ),
    Procedure(
        id="X07-deaf",
        title="code that blocks every signal and spins past its time",
        play=Attempt(
            """
            import signal

            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            while True:
                pass
            """,
            limits={"learner_timeout_s": 1.0},
            around=_soon,
            patience_s=_PATIENCE_S,
        ),
        codes=("pod.timed_out",),
    ),
    Procedure(
        id="X07-daemon",
        title="an orphan in a session of its own, deaf to signals, that should outlive its pod",
        play=_daemon,
        codes=(CONTAINED,),
    ),
    Procedure(
        id="X07-cores",
        title="every core of the machine, where one was given",
        play=Attempt(
            """
            def spread():
                os.sched_setaffinity(0, range(64))
                return len(os.sched_getaffinity(0)) > 1


            attempt("more than one core", spread)
            """,
            limits={"max_cpus": 1},
        ),
        codes=(CONTAINED,),
    ),
    Procedure(
        id="X09-core",
        title="a core dump, in the only folder that can be written to",
        play=Attempt(
            """
            import resource


            def dump():
                child = os.fork()
                if child == 0:
                    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
                    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
                    os.abort()
                os.waitpid(child, 0)
                return resource.getrlimit(resource.RLIMIT_CORE)[1] != 0


            attempt("a core dump", dump)
            """
        ),
        codes=(CONTAINED,),
    ),
)
