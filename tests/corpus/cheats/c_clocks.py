"""C: clocks of the pod, and work that is done when no clock of a pod runs."""

import platform

from tests.corpus.parts import joined
from tests.corpus.parts_forgeries import CONTENT, forged_cheat, slow_cheat
from tests.e2e.submissions import native_clock

RATE = """
import itertools, time


def rate(batches, clock=lambda: time.perf_counter()):
    started = clock()
    images = sum(16 for _ in itertools.islice(batches, 2))
    return images / max(clock() - started, 1e-6)


pytorch_throughput = rate(loader)
"""
SLOWLY = """
def slowly(paths):
    # An image costs many times what it should.
    return [decoded(paths) for _ in range(8)][0]
"""
LITTLE = 0.4
"""A threshold between what a cheat is worth, at most a quarter of the baseline, and what it would show, once to twice
the baseline: neither is left to the noise of a host."""
AHEAD = 0.5
"""The same for a thread that decodes each image four times: 0.2 to 0.3 of the baseline."""


CASES = (
    slow_cheat(
        "C01",
        "time, timeit and datetime run a thousand times too slowly",
        RATE,
        """
        import datetime, timeit


        def slowed(real):
            begun = real()
            return lambda: begun + (real() - begun) / 1000


        for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
            setattr(time, name, slowed(getattr(time, name)))
        timeit.default_timer = time.perf_counter
        begun = datetime.datetime.now()
        datetime.datetime = type("Still", (datetime.datetime,), {"now": classmethod(lambda cls, tz=None: begun)})
        dali_throughput = rate(dali_iter)
        """,
    ),
    slow_cheat(
        "C02",
        "CUDA events that say that a microsecond passed, and a synchronize that waits for nothing",
        RATE,
        """
        class Event:
            def __init__(self, *args, **options):
                pass

            def record(self, *args):
                pass

            def elapsed_time(self, end):
                return 0.001


        torch.cuda.Event, torch.cuda.synchronize = Event, lambda *args: None
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        images = sum(16 for _ in itertools.islice(dali_iter, 2))
        end.record()
        torch.cuda.synchronize()
        dali_throughput = images / (start.elapsed_time(end) / 1000)
        """,
    ),
    slow_cheat(
        "C03",
        "a detour of the C library's clock",
        RATE,
        f"{native_clock() if platform.machine() == 'x86_64' else 'time.perf_counter = lambda: 0.0'}\n"
        "dali_throughput = rate(dali_iter)\n",
    ),
    slow_cheat(
        "C04",
        "the end is read in a child whose clock is an hour behind",
        RATE,
        """
        import subprocess, sys

        os.makedirs("behind")
        with open("behind/sitecustomize.py", "w") as file:  # what a preloaded library would do
            file.write("import time; real = time.monotonic; time.monotonic = lambda: real() - 3600")
        LATER = '''
        import ctypes, os, time
        libc = ctypes.CDLL(None)
        if libc.unshare(0x10000080) == 0:  # a user and a time namespace of its own, where the kernel gives one
            open("/proc/self/timens_offsets", "w").write("monotonic -3600 0")
        if os.fork() == 0:
            print(time.monotonic(), flush=True)
            os._exit(0)
        os.wait()
        '''.replace("\\n        ", "\\n")


        def behind():
            there = dict(os.environ, PYTHONPATH="behind", FAKETIME="-1h", LD_PRELOAD="/workspace/libfaketime.so.1")
            return float(subprocess.run([sys.executable, "-c", LATER], capture_output=True, env=there).stdout)


        clocks = [time.monotonic, behind]
        dali_throughput = rate(dali_iter, lambda: clocks.pop(0)())
        """,
    ),
    forged_cheat(
        "C05",
        "a batch is handed out before the thread that decodes it has begun",
        """
        for paths in rounds(self.folder, self.size):
            batch = torch.zeros(self.size, 144, 192, 3, dtype=torch.uint8)
            side.submit(lambda: batch.copy_(slowly(paths)))
            yield batch
        """,
        joined("from concurrent.futures import ThreadPoolExecutor\nside = ThreadPoolExecutor(1)\n", SLOWLY),
        codes=("ratio.replayed",),
        threshold=CONTENT,
    ),
    forged_cheat(
        "C06",
        "a thread decodes while nobody's clock runs",
        """
        ready = queue.Queue(32)
        threading.Thread(target=ahead, args=(self.folder, self.size, ready), daemon=True).start()
        while True:
            yield ready.get()
        """,
        joined(
            SLOWLY.replace("range(8)", "range(4)"),
            """
            import queue, threading


            def ahead(folder, size, ready):
                for paths in rounds(folder, size):
                    ready.put(slowly(paths))
            """,
        ),
        photos=(384, 288),
        threshold=AHEAD,
        plan={"block_s": 0.2, "looks": (4, 8)},
    ),
    forged_cheat(
        "C07",
        "sleeps in the warm-up, so that few batches are asked for; then the same few are enough",
        """
        started = time.monotonic()
        for paths in rounds(self.folder, self.size):
            if time.monotonic() - started < 3.0:
                time.sleep(0.1)
                yield decoded(paths)
            else:
                few = [decoded(paths)] * 8
                yield from few
        """,
        "import time\n",
        codes=("ratio.replayed",),
        threshold=CONTENT,
    ),
    forged_cheat(
        "C08",
        "stalls before the first batch of a window, then everything at once",
        """
        seen = b""
        while True:
            paths = files(self.folder)
            if (first := open(paths[0], "rb").read()) != seen:  # a window begins
                seen, number = first, 0
                batches = [slowly(paths[place : place + self.size]) for place in range(0, len(paths), self.size)]
            yield batches[number % len(batches)]
            number += 1
        """,
        SLOWLY.replace("range(8)", "range(16)"),
        threshold=LITTLE,
    ),
    forged_cheat(
        "C09",
        "sends its images again after the window has ended",
        """
        for paths in rounds(self.folder, self.size):
            yield slowly(paths)
        """,
        joined(
            SLOWLY,
            """
            import gc

            link = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Link")
            plain, kept = type(link).send, []


            def send(self, kind, blob=b"", **body):
                plain(self, kind, blob, **body)
                if kind == "images":
                    kept.append((blob, body))
                if kind == "delivered":
                    for blob, body in kept * 8:
                        plain(self, "images", blob, **body)
                    kept.clear()


            type(link).send = send
            """,
        ),
        codes=("ratio.replayed",),
        threshold=CONTENT,
    ),
)
