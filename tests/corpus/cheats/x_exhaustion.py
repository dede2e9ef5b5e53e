"""X: exhaustion of processes, memory, scratch, log and time."""

import time
from unittest.mock import patch

import psutil

from sandbox.docker.engine import DockerHandle
from sandbox.pod import ContainerEnd
from tests.corpus.case import Observed, Procedure
from tests.corpus.parts_containment import CONTAINED, Attempt, contained
from tests.corpus.parts_files import baseline_cheat
from tests.corpus.world import World, collected_soon

_PATIENCE_S = 20.0
_KEPT = 1 << 20
"""More of a pod's output than that is no capped log."""


def _flood(world: World) -> Observed:
    """Counts what the engine kept of a pod's output when the pod ended."""
    kept: list[int] = []
    destroy = DockerHandle.destroy

    def counted(handle: DockerHandle) -> ContainerEnd:
        kept.append(len(handle._container.logs()))
        return destroy(handle)

    script = """
    for _ in range(256):
        os.write(1, b"x" * 65536)
    """
    with patch.object(DockerHandle, "destroy", counted):
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
    contained(
        "X01-processes",
        "300 processes where 64 are allowed",
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
    contained(
        "X01-threads",
        "300 threads where 64 are allowed",
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
    contained(
        "X02-memory",
        "700 MiB of memory where 512 are allowed",
        """
        def hog():
            block = bytearray(700 << 20)
            block[::4096] = b"x" * len(block[::4096])
            return True


        attempt("700 MiB", hog)
        """,
        limits={"memory_mib": 512},
        code="pod.out_of_memory",
    ),
    contained(
        "X02-child",
        "a child that takes the memory and is killed for it, while its parent goes on",
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
    contained(
        "X02-scratch",
        "96 MiB in each folder of 64 MiB, all left full",
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
    contained(
        "X02-inodes",
        "3,000 empty files where 1,000 are allowed",
        """
        def litter():
            for number in range(3000):
                open(f"/workspace/{number}", "wb").close()
            return True


        attempt("3,000 files", litter)
        """,
        limits={"workspace_inodes": 1000},
    ),
    contained(
        "X02-elsewhere",
        "files outside the scratch, where no limit would count them",
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
        """,
    ),
    baseline_cheat(
        "X02-sparse",
        "a hundred files that begin as JPEGs and claim a terabyte each",
        """
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
    ),
    Procedure("X03-flood", "16 MiB of output without a line's end", _flood, (CONTAINED,)),
    contained(
        "X07-deaf",
        "code that blocks every signal and spins past its time",
        """
        import signal

        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            pass
        """,
        limits={"learner_timeout_s": 1.0},
        around=collected_soon,
        patience_s=_PATIENCE_S,
        code="pod.timed_out",
    ),
    Procedure(
        "X07-daemon",
        "an orphan in a session of its own, deaf to signals, that should outlive its pod",
        _daemon,
        (CONTAINED,),
    ),
    contained(
        "X07-cores",
        "every core of the machine, where one was given",
        """
        def spread():
            os.sched_setaffinity(0, range(64))
            return len(os.sched_getaffinity(0)) > 1


        attempt("more than one core", spread)
        """,
        limits={"max_cpus": 1},
    ),
    contained(
        "X09-core",
        "a core dump, in the only folder that can be written to",
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
        """,
    ),
)
