"""N: ways out of a pod, to the kernel and the machine below it.

What would work does no harm: nothing is set, mounted or loaded; a door that opens is closed again.
"""

from tests.corpus.parts_containment import CALL, contained

_CALLS = """
def child(deed):
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            deed()
            os.write(writing, b"1")
        finally:
            os._exit(0)
    os.close(writing)
    os.wait()
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read() == b"1"


def trace():
    target = os.fork()
    if target == 0:
        time.sleep(5)
        os._exit(0)
    try:
        call(101, 16, target, 0, 0)
    finally:
        os.kill(target, 9)


parameters = ctypes.create_string_buffer(120)
attributes = ctypes.create_string_buffer((1).to_bytes(4, "little") + (64).to_bytes(4, "little") + bytes(56), 128)
attempt("ptrace", lambda: child(trace))
attempt("process_vm_readv", lambda: call(310, os.getpid(), 0, 0, 0, 0, 0) == 0)
attempt("pidfd_getfd", lambda: call(438, os.pidfd_open(os.getpid()), 1, 0) >= 0)
attempt("keyctl", lambda: call(250, 0, -4, 1) > 0)
attempt("userfaultfd", lambda: call(323, 1) >= 0)
attempt("io_uring_setup", lambda: call(425, 1, parameters) >= 0)
attempt("perf_event_open", lambda: call(298, attributes, 0, -1, -1, 0) >= 0)
attempt("a user namespace", lambda: child(lambda: call(272, 0x10000000)))
attempt("bpf", lambda: call(321, 0, attributes, 64) >= 0)
attempt("mount", lambda: call(165, b"none", b"/tmp", b"tmpfs", 0, 0) == 0)
attempt("fsopen", lambda: call(430, b"tmpfs", 0) >= 0)
attempt("open_by_handle_at", lambda: call(304, -100, parameters, 0) >= 0)
attempt("kcmp", lambda: call(312, os.getpid(), os.getpid(), 0, 0, 0) == 0)
attempt("fanotify", lambda: call(300, 0x200, 0) >= 0)
attempt("msgget", lambda: call(68, 0, 0o600) >= 0)
attempt("the clock", lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()) is None)
"""

CASES = (
    contained("N07-calls", "the kernel's doors that most escapes went through", CALL, _CALLS),
    contained(
        "N07-raw-sockets",
        "packets by hand, and the rare families of sockets",
        """
        import socket


        def opened(family, kind, protocol):
            socket.socket(family, kind, protocol).close()
            return True


        attempt("raw", lambda: opened(2, 3, 1))
        attempt("ping", lambda: opened(2, 2, 1))
        attempt("multipath TCP", lambda: opened(2, 1, 262))
        for family in range(46):
            if family not in (1, 2, 10, 16):
                for kind in (1, 2, 3, 5):
                    attempt(f"family {family} kind {kind}", lambda: opened(family, kind, 0))
        """,
    ),
    contained(
        "N07-interfaces",
        "files by which the kernel is steered, and those that show its memory",
        """
        import contextlib


        def steer(path):
            os.close(os.open(path, os.O_WRONLY))
            return True


        def show(path):
            with open(path, "rb") as file:
                return file.read(16).strip(b"\\0 \\n")


        for path in (
            "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
            "/proc/sys/vm/drop_caches", "/proc/sys/kernel/hostname", "/sys/kernel/uevent_helper",
            "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/pids/pids.max", "/proc/1/oom_score_adj_host", "/dev/mem", "/dev/kmsg",
        ):
            attempt(f"writes {path}", lambda: steer(path))
        for path in (
            "/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/dev/mem", "/proc/keys", "/proc/timer_list",
            "/proc/sched_debug", "/sys/firmware/dmi/tables/DMI",
        ):
            attempt(f"reads {path}", lambda: show(path))
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("-1000")
        attempt("less likely to be killed", lambda: int(open("/proc/self/oom_score_adj").read()) < 500)
        attempt("a device of the host", lambda: os.open("/dev/vda", os.O_RDONLY) >= 0)
        """,
    ),
    contained(
        "N07-set-id",
        "a program of the image that runs as root",
        """
        import subprocess


        def root(program):
            with subprocess.Popen(
                program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as running:
                time.sleep(0.2)
                try:
                    with open(f"/proc/{running.pid}/status") as file:
                        users = next(line for line in file if line.startswith("Uid:")).split()
                    return "0" in users[1:]
                finally:
                    running.kill()


        for program in (["/usr/bin/passwd"], ["/usr/bin/su"], ["/usr/bin/chsh"]):
            attempt(f"root by {program[0]}", lambda: root(program))
        """,
    ),
    contained(
        "N07-root",
        "what only root of the image may read",
        """
        attempt("uid 0", lambda: os.getuid() == 0)
        attempt("/etc/shadow", lambda: open("/etc/shadow").read())
        """,
    ),
    contained(
        "N07-capabilities",
        "what a process may do that has capabilities",
        """
        def change_owner():
            path = "/workspace/mine"
            open(path, "w").close()
            os.chown(path, 1, 1)
            return True


        attempt("another owner", change_owner)
        attempt("higher priority", lambda: os.nice(-5) < 0)
        attempt("a device", lambda: os.mknod("/workspace/null", 0o020666, os.makedev(1, 3)) is None)
        """,
    ),
)
