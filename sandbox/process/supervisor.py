"""Keeps one guest's whole process tree together and kills all of it; a program of its own, standard library only.

As child subreaper it inherits every orphan of the tree, so that a daemon that forked twice and took a new session is
still found. It reads one-letter orders on standard input (`p` pause, `r` resume, `o` tell what was written so far, `k`
or end of file: kill everything), answers the start and each order with a line on standard output, which is empty but
for `o`, a JSON text, and ends with one JSON line there: exit code, whether memory ran out, and the log's tail.

    supervisor.py MEMORY_MIB COMMAND...
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
LOG_BYTES = 64 << 10
POLL_S = 0.1
WATCH_SHARE = 0.05
"""Most of one processor's time that watching the memory may take from what is measured beside it."""
KILL_S = 10.0
PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


def parents() -> dict[int, int]:
    """Process id to parent id, of every process that can be seen."""
    table = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with (
                contextlib.suppress(OSError, IndexError, ValueError),
                open(f"/proc/{entry}/stat", "rb") as file,
            ):
                # The command name may hold spaces and brackets: fields count from the last bracket.
                fields = file.read().rpartition(b")")[2].split()
                if fields[0] != b"Z":
                    table[int(entry)] = int(fields[1])
    return table


def descendants() -> list[int]:
    """Every living process below this one, parents before children."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def send(number: int, pids: list[int]) -> None:
    """Sends a signal to those of these processes that are still there, and to all of their process groups.

    A group gets it at one instant: a process that forks and leaves all the time is no longer there when its turn
    comes, but its group is. No group of the tree has members outside: the guest was started in a session of its own.
    """
    groups = set()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            groups.add(os.getpgid(pid))
            os.kill(pid, number)
    for group in groups - {os.getpgid(0)}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def stands(pid: int) -> bool:
    """Whether every thread of a process is stopped, dead or gone: one that was told to stop may run for an instant."""
    with contextlib.suppress(OSError, IndexError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
                if file.read().rpartition(b")")[2].split()[0] not in (b"T", b"t", b"Z", b"X"):
                    return False
    return True


def stop_everything() -> None:
    """Freezes every descendant, until each stands still and there is none that was forked meanwhile."""
    told: set[int] = set()
    deadline = time.monotonic() + KILL_S
    while time.monotonic() < deadline:
        running = [pid for pid in descendants() if not stands(pid)]
        if not running:
            return
        send(signal.SIGSTOP, [pid for pid in running if pid not in told])
        told.update(running)
        time.sleep(0.001)


def kill_everything(ended: dict[int, int]) -> None:
    """Stops the tree first, so that it cannot fork away, then kills until nothing is left."""
    deadline = time.monotonic() + KILL_S
    while time.monotonic() < deadline:
        send(signal.SIGSTOP, descendants())
        left = descendants()
        send(signal.SIGKILL, left)
        reap(ended)
        if not left:
            return
        time.sleep(0.01)


def reap(ended: dict[int, int]) -> None:
    """Collects every child that ended, our own and inherited ones: process id to wait status."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            ended[pid] = status


def takes_too_much(limit_kib: int) -> bool:
    """Whether the tree has more memory than it may.

    Private pages are cheap to count, but those that a fork shares are counted once for each process; only where the
    sum is above the limit are they counted exactly, each process with its share.
    """
    pids = descendants()
    return sum(map(private_kib, pids)) > limit_kib and sum(map(proportional_kib, pids)) > limit_kib


def private_kib(pid: int) -> int:
    """Memory of a process that no file stands behind; 0 when it is gone."""
    with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/statm", "rb") as file:
        fields = file.read().split()
        return (int(fields[1]) - int(fields[2])) * PAGE_KIB
    return 0


def proportional_kib(pid: int) -> int:
    """Memory of a process, with its share of what it has in common with others."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(b"Pss:"))
    except (OSError, StopIteration, ValueError):
        return private_kib(pid)


def acknowledge(answer: str = "") -> None:
    """Tells the host that what it asked for is done, or the answer."""
    with contextlib.suppress(BrokenPipeError):
        print(answer, flush=True)


def supervise(guest: int, output: int, limit_kib: int) -> dict[str, object]:
    """Watches the tree until it is told to end it; returns the report."""
    orders = sys.stdin.fileno()
    watched = [orders, output]
    log = bytearray()
    ended: dict[int, int] = {}
    over = out_of_memory = False
    next_look = time.monotonic() + POLL_S
    while True:
        ready = select.select(watched, [], [], POLL_S)[0]
        if output in ready:
            chunk = os.read(output, 1 << 16)
            log += chunk
            del log[:-LOG_BYTES]
            if not chunk:
                watched.remove(output)
        reap(ended)
        if guest in ended and not over:
            # The host sees the guest's end by its closed connection; stragglers may hold that open.
            over = True
            kill_everything(ended)
        if orders in ready:
            order = os.read(orders, 1)
            if order == b"p":
                stop_everything()
            elif order == b"r":
                send(signal.SIGCONT, descendants())
            elif order == b"o":
                acknowledge(json.dumps(bytes(log).decode(errors="replace")))
                continue
            else:
                break
            acknowledge()
        if not over and time.monotonic() >= next_look:
            started = time.monotonic()
            if takes_too_much(limit_kib):
                over = out_of_memory = True
                kill_everything(ended)
            next_look = started + max(POLL_S, (time.monotonic() - started) / WATCH_SHARE)
    kill_everything(ended)
    with contextlib.suppress(OSError):
        log += os.read(output, 1 << 16)
    status = ended.get(guest)
    return {
        "exit_code": -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status),
        "out_of_memory": out_of_memory,
        "log_tail": bytes(log[-LOG_BYTES:]).decode(errors="replace"),
    }


def main() -> int:
    """Runs the command until it is told to stop; see the module's docstring."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    output, write_end = os.pipe()
    os.set_blocking(output, False)
    guest = subprocess.Popen(
        sys.argv[2:], stdin=subprocess.DEVNULL, stdout=write_end, stderr=write_end, start_new_session=True
    )
    os.close(write_end)
    acknowledge()
    report = supervise(guest.pid, output, int(sys.argv[1]) * 1024)
    with contextlib.suppress(BrokenPipeError):  # whoever wanted to know is gone
        print(json.dumps(report), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
