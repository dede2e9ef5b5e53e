"""The list of system calls: what it says, what a real kernel refuses by it, and what the lab's libraries need."""

import errno
import json
import platform
import signal
import textwrap
from pathlib import Path

import pytest

from sandbox import seccomp
from sandbox.api import PodRole, PodSpec
from sandbox.docker.options import PodFolders, ScratchVolumes, container_options
from tests.sandbox.seccomp_page import PAGE, page

NUMBERS = {
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "process_madvise": 440,
    "process_mrelease": 448, "kcmp": 312, "pidfd_getfd": 438, "move_pages": 279, "migrate_pages": 256,
    "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "bpf": 321,
    "perf_event_open": 298, "lookup_dcookie": 212, "keyctl": 250, "add_key": 248, "request_key": 249, "mount": 165,
    "umount2": 166, "pivot_root": 155, "chroot": 161, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "move_mount": 429, "open_tree": 428, "mount_setattr": 442, "quotactl": 179, "quotactl_fd": 443, "swapon": 167,
    "swapoff": 168, "unshare": 272, "setns": 308, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "fanotify_init": 300, "fanotify_mark": 301, "sync": 162, "syncfs": 306, "clock_settime": 227,
    "settimeofday": 164, "adjtimex": 159, "clock_adjtime": 305, "init_module": 175, "finit_module": 313,
    "delete_module": 176, "create_module": 174, "get_kernel_syms": 177, "query_module": 178, "kexec_load": 246,
    "kexec_file_load": 320, "reboot": 169, "syslog": 103, "acct": 163, "iopl": 172, "ioperm": 173,
    "sethostname": 170, "setdomainname": 171, "nfsservctl": 180, "vhangup": 153, "uselib": 134, "ustat": 136,
    "sysfs": 139, "_sysctl": 156, "vmsplice": 278, "remap_file_pages": 216, "modify_ldt": 154, "memfd_secret": 447,
    "mq_open": 240, "mq_unlink": 241, "mq_timedsend": 242, "mq_timedreceive": 243, "mq_notify": 244,
    "mq_getsetattr": 245, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "sched_setattr": 314,
    "io_setup": 206, "io_submit": 209, "io_getevents": 208, "io_pgetevents": 333, "io_cancel": 210, "io_destroy": 207,
    "inotify_init": 253, "inotify_init1": 294, "inotify_add_watch": 254, "inotify_rm_watch": 255,
    "setfsuid": 122, "setfsgid": 123,
}  # fmt: skip
"""Of x86-64, where the calls themselves are made."""

x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of the calls are those of x86-64")

CALLS = """
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
answers = {}
for name, numbers in json.loads(sys.argv[1]).items():
    reading, writing = os.pipe()
    if os.fork() == 0:
        result = libc.syscall(*(ctypes.c_long(number) for number in numbers))
        os.write(writing, str(ctypes.get_errno() if result == -1 else 0).encode())
        os._exit(0)
    os.close(writing)
    text = os.read(reading, 10)
    status = os.wait()[1]
    answers[name] = int(text) if text else -os.WTERMSIG(status)
print(json.dumps(answers))
"""
"""Makes each call in a process of its own: its error, 0, or the negative number of the signal that ended it."""

NATIVE_32_BIT = """
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20; int 0x80; ret: getpid of the 32-bit table
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
"""


def in_a_pod(engine, image, script, *arguments, profile=True):
    """(exit status, standard output) of a Python program behind a pod's walls."""
    spec = PodSpec(role=PodRole.LEARNER, program="drill", memory_mib=4096, pids=256, cpus=(0, 1), shm_mib=256)
    options = container_options(
        spec,
        run_id="test",
        number=0,
        labels={},
        image=image,
        folders=PodFolders(*[Path("/nowhere")] * 4, None),
        volumes=ScratchVolumes("a", "b", "c"),
        gpu=None,
        uid=65534,
    )
    options.pop("name")
    options["mounts"] = []
    if not profile:
        options["security_opt"] = ["no-new-privileges:true", "seccomp=unconfined"]
    options["command"] = ["python3", "-u", "-c", textwrap.dedent(script), *arguments]
    container = engine.containers.create(**options)
    try:
        container.start()
        status = container.wait(timeout=240)["StatusCode"]
        return status, container.logs(stdout=True, stderr=status != 0).decode()
    finally:
        container.remove(force=True)


def answers(engine, image, calls, *, profile=True):
    """Error of each call, made behind a pod's walls."""
    status, output = in_a_pod(engine, image, CALLS, json.dumps(calls), profile=profile)
    assert status == 0, output
    return json.loads(output)


def test_every_name_has_one_place():
    """No call is allowed twice or both allowed and refused; every group says why."""
    groups = [*seccomp.ALLOWED, *seccomp.REFUSED]
    names = [name for group in groups for name in group.names]
    assert len(names) == len(set(names))
    assert all(group.names and len(group.reason) > 10 for group in groups)
    assert len({group.title for group in groups}) == len(groups)


def test_what_is_not_listed_is_refused():
    """The default is an error, nothing is only logged or traced, and the text is one line of plain JSON."""
    profile = json.loads(seccomp.profile_text())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {entry["architecture"] for entry in profile["archMap"]} == {"SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"}
    assert all(entry["subArchitectures"] == [] for entry in profile["archMap"])
    allowed = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    assert {rule["action"] for rule in profile["syscalls"]} == {"SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"}
    assert allowed.isdisjoint(name for group in seccomp.REFUSED for name in group.names)
    assert "clone3" not in allowed
    assert "\n" not in seccomp.profile_text()


def test_every_refused_call_is_tried():
    """The table of numbers above is whole."""
    assert set(NUMBERS) == {name for group in seccomp.REFUSED for name in group.names}


def test_the_page_is_made_of_the_list():
    """`docs/seccomp.md` says what the code says."""
    assert PAGE.read_text() == page()


@x86
def test_refused_calls_fail(engine, lab_image):
    """Each of them, on this kernel, with EPERM."""
    got = answers(engine, lab_image, {name: [number] + [0] * 6 for name, number in NUMBERS.items()})
    assert {name: error for name, error in got.items() if error != errno.EPERM} == {}


@x86
def test_it_is_the_list_that_refuses_them(engine, lab_image):
    """Without it a process without any capability reaches the kernel's code with these."""
    reachable = ("ptrace", "process_vm_readv", "keyctl", "userfaultfd", "io_uring_setup", "unshare", "kcmp", "msgget")
    calls = {name: [NUMBERS[name], 1 if name == "userfaultfd" else 0] + [0] * 5 for name in reachable}
    got = answers(engine, lab_image, calls, profile=False)
    assert [name for name, error in got.items() if error == errno.EPERM] == []


SOCKET, CLONE, CLONE3, PERSONALITY, SET_SCHEDULER, MKNOD, MKNODAT, SOCKETPAIR = 41, 56, 435, 135, 144, 133, 259, 53
SIGCHLD = 17


@x86
def test_arguments_decide(engine, lab_image):
    """Families and kinds of sockets, namespaces, personalities, scheduling classes, kinds of files."""
    refused = {
        "unix pair of another family": [SOCKETPAIR, 30, 1, 0, 0],
        "raw": [SOCKET, 2, 3, 1],
        "raw, close on exec": [SOCKET, 2, 3 | 0o2000000, 1],
        "raw of version 6": [SOCKET, 10, 3, 58],
        "ping": [SOCKET, 2, 2, 1],
        "sctp": [SOCKET, 2, 1, 132],
        "multipath": [SOCKET, 2, 1, 262],
        "netlink of netfilter": [SOCKET, 16, 3, 12],
        **{f"family {family}": [SOCKET, family, 1, 0] for family in range(46) if family not in (1, 2, 10, 16)},
        **{
            f"namespace {flag:#x}": [CLONE, flag | SIGCHLD, 0, 0, 0, 0]
            for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
        },
        "personality without a random layout": [PERSONALITY, 0x40000],
        "real time, first in first out": [SET_SCHEDULER, 0, 1, 0],
        "real time, in turn": [SET_SCHEDULER, 0, 2, 0],
        "deadlines": [SET_SCHEDULER, 0, 6, 0],
        "a device": [MKNOD, 0, 0o020666, 0x103],
        "a device in a folder": [MKNODAT, -100, 0, 0o060666, 0],
    }
    got = answers(engine, lab_image, {**refused, "clone3": [CLONE3, 0, 0]})
    assert got.pop("clone3") == errno.ENOSYS
    assert {name: error for name, error in got.items() if error != errno.EPERM} == {}
    allowed = {
        "unix": [SOCKET, 1, 1, 0],
        "unix, close on exec": [SOCKET, 1, 5 | 0o2000000, 0],
        "tcp": [SOCKET, 2, 1 | 0o4000, 6],
        "udp": [SOCKET, 10, 2, 0],
        "interfaces": [SOCKET, 16, 3 | 0o2000000, 0],
        "personality": [PERSONALITY, 0xFFFFFFFF],
    }
    assert set(answers(engine, lab_image, allowed).values()) == {0}


@x86
def test_32_bit_calls_kill(engine, lab_image):
    """The 32-bit table is a second door with numbers of its own: a program that knocks there ends."""
    status, output = in_a_pod(engine, lab_image, NATIVE_32_BIT)
    assert status == 128 + signal.SIGSYS, output


ORDINARY = """
import ctypes, multiprocessing, os, socket, subprocess, sys, tempfile, threading, time

import numpy as np
from PIL import Image


def squared(value):
    return value * value


def main():
    folder = tempfile.mkdtemp()
    os.makedirs(f"{folder}/set/a")
    noise = np.random.default_rng(1)
    for number in range(32):
        Image.fromarray(noise.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(f"{folder}/set/a/{number}.jpg")
    assert subprocess.run(["/bin/sh", "-c", "exit 3"]).returncode == 3
    os.mkfifo(f"{folder}/pipe")
    threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(16)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(squared, range(4)) == [0, 1, 4, 9]
    assert [name for _, name in socket.if_nameindex()] == ["lo"]
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname()).close()
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    os.close(os.memfd_create("m"))

    import matplotlib.pyplot as plt
    plt.plot([1, 2]); plt.savefig(f"{folder}/figure.png")

    import torch, torch.distributed
    from torchvision import datasets, transforms
    files = datasets.ImageFolder(f"{folder}/set", transforms.ToTensor())
    for method in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(files, batch_size=8, num_workers=2, multiprocessing_context=method)
        assert sum(len(batch) for batch, _ in loader) == 32, method
    torch.distributed.init_process_group("gloo", f"file://{folder}/meet", rank=0, world_size=1)
    torch.distributed.all_reduce(torch.ones(1))
    torch.distributed.destroy_process_group()

    from nvidia.dali import fn, pipeline_def
    @pipeline_def(batch_size=8, num_threads=2, device_id=None)
    def pipeline():
        jpegs, labels = fn.readers.file(file_root=f"{folder}/set")
        return fn.resize(fn.decoders.image(jpegs), size=(32, 32)), labels
    images, _ = pipeline().run()
    assert len(images) == 8
    sys.stdout.write("all of it")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_the_labs_libraries_miss_nothing(engine, lab_image):
    """Processes, threads, sockets on loopback, Pillow, Matplotlib, torch's workers, gloo and DALI."""
    # Processes that are spawned read the program again, so it is a file.
    starter = (
        "import pathlib, runpy, sys; p = '/tmp/ordinary.py'; pathlib.Path(p).write_text(sys.argv[1]); "
        "import os; os.execv(sys.executable, [sys.executable, p])"
    )
    status, output = in_a_pod(engine, lab_image, starter, ORDINARY)
    assert (status, output.splitlines()[-1:]) == (0, ["all of it"])
