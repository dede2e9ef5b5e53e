"""The system calls that a pod may make: everything else is refused.

`ALLOWED` is the list and `REFUSED` says what is missing from it on purpose; both give a reason with each group, and
`docs/seccomp.md` is made of them. A profile file for an engine or a review: `python -m sandbox.seccomp`.
"""

import errno
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

ARCHITECTURES = ("SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64")
"""Native calls only: a 32-bit call (`int 0x80`, x32) kills the process that makes it."""


@dataclass(frozen=True)
class Argument:
    """What one argument of a call must be: the bits of `mask` have the value `value`."""

    index: int
    value: int
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True)
class Group:
    """Calls that belong together, and why they are allowed or refused."""

    title: str
    reason: str
    names: tuple[str, ...]
    when: tuple[tuple[Argument, ...], ...] = ()
    """Sets of arguments of which one must be met; none: any arguments."""
    error: int = 0
    """Refused with this error; 0: with EPERM when refused, not at all when allowed."""


def _group(title: str, reason: str, names: str, **more: Any) -> Group:
    return Group(title, reason, tuple(names.split()), **more)


_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_KIND = 0xF
"""A socket's kind without SOCK_CLOEXEC and SOCK_NONBLOCK."""
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _TCP, _UDP = 1, 2, 6, 17
_FIFO, _FORMAT = 0o010000, 0o170000

ALLOWED: Sequence[Group] = (
    _group(
        "files",
        "Reading, writing and naming files. Where a pod may do so is the mounts' matter, not this list's.",
        "access faccessat faccessat2 open openat openat2 creat close close_range read readv pread64 preadv preadv2"
        " write writev pwrite64 pwritev pwritev2 lseek stat lstat fstat newfstatat statx statfs fstatfs getdents"
        " getdents64 readlink readlinkat rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat mkdir"
        " mkdirat rmdir chdir fchdir getcwd chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes"
        " futimesat utimensat truncate ftruncate fallocate fadvise64 readahead sync_file_range fsync fdatasync umask"
        " dup dup2 dup3 fcntl flock getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr"
        " fsetxattr removexattr lremovexattr fremovexattr cachestat",
    ),
    _group(
        "copies inside the kernel",
        "`shutil.copyfile`, pipes and web servers on loopback use them.",
        "sendfile copy_file_range splice tee",
    ),
    _group(
        "device control",
        "Every call into the NVIDIA driver is an ioctl on its device nodes. A pod has no other device and no terminal.",
        "ioctl",
    ),
    _group(
        "named pipes",
        "`os.mkfifo`. Device nodes would need a capability; here they are refused before that.",
        "mknod",
        when=((Argument(1, _FIFO, _FORMAT),),),
    ),
    _group(
        "named pipes, in a folder",
        "The same, by a folder's descriptor.",
        "mknodat",
        when=((Argument(2, _FIFO, _FORMAT),),),
    ),
    _group(
        "memory",
        "Heaps, mapped files, shared memory of DataLoader workers, CUDA's reserved address space, code that Triton and"
        " torch compile, page-locked buffers (the memory limit counts them).",
        "brk mmap munmap mremap mprotect madvise msync mincore mlock mlock2 mlockall munlock munlockall memfd_create"
        " pkey_alloc pkey_free pkey_mprotect membarrier",
    ),
    _group(
        "memory of a NUMA node",
        "The CUDA driver, NCCL and libnuma place their own page-locked buffers and warn loudly when they may not. The"
        " calls that move another process's pages are refused.",
        "mbind get_mempolicy set_mempolicy",
    ),
    _group(
        "shared memory and semaphores of System V",
        "Older native libraries. The pod's IPC namespace is private, so nobody else is in it.",
        "shmget shmat shmdt shmctl semget semop semtimedop semctl",
    ),
    _group(
        "programs and their ends",
        "`subprocess`, DataLoader workers, job control.",
        "execve execveat exit exit_group wait4 waitid fork vfork kill tkill tgkill pidfd_open pidfd_send_signal"
        " getpid getppid gettid getpgid getpgrp getsid setpgid setsid set_tid_address set_robust_list get_robust_list"
        " rseq arch_prctl prctl restart_syscall",
    ),
    _group(
        "new processes and threads",
        "`fork` and `pthread_create`, as long as no namespace is asked for: inside one a process has capabilities over"
        " parts of the kernel that no other process can reach.",
        "clone",
        when=((Argument(0, 0, _NAMESPACES),),),
    ),
    _group(
        "new processes, in the newer form",
        "Its flags lie in memory, where a filter cannot look. ENOSYS sends every C library back to `clone`.",
        "clone3",
        error=errno.ENOSYS,
    ),
    _group(
        "personality",
        "Asking for it, and setting the usual one.",
        "personality",
        when=((Argument(0, 0),), (Argument(0, 0xFFFFFFFF),)),
    ),
    _group(
        "signals",
        "Handlers, masks and waiting, also through descriptors.",
        "rt_sigaction rt_sigprocmask rt_sigpending rt_sigqueueinfo rt_tgsigqueueinfo rt_sigreturn rt_sigsuspend"
        " rt_sigtimedwait sigaltstack signalfd signalfd4 pause",
    ),
    _group(
        "locks and waiting",
        "Threads, queues, event loops.",
        "futex futex_waitv poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_wait"
        " epoll_wait_old epoll_pwait epoll_pwait2 eventfd eventfd2 pipe pipe2",
    ),
    _group(
        "clocks and timers",
        "Reading and sleeping; setting a clock is refused.",
        "clock_gettime clock_getres clock_nanosleep gettimeofday time times nanosleep alarm getitimer setitimer"
        " timer_create timer_settime timer_gettime timer_getoverrun timer_delete timerfd_create timerfd_settime"
        " timerfd_gettime",
    ),
    _group(
        "scheduling",
        "Thread pools ask for their cores and set affinity; the CPU set holds whatever they ask for.",
        "sched_yield sched_getaffinity sched_setaffinity sched_getscheduler sched_getparam sched_setparam"
        " sched_getattr sched_get_priority_max sched_get_priority_min sched_rr_get_interval getcpu getpriority"
        " setpriority ioprio_get ioprio_set",
    ),
    _group(
        "scheduling classes",
        "The usual one, batch and idle; not the real-time classes, which starve everything else on a core.",
        "sched_setscheduler",
        when=tuple((Argument(1, policy, 0xBFFFFFFF),) for policy in (0, 3, 5)),
    ),
    _group(
        "limits and facts",
        "Asking what the machine and the process have; lowering limits.",
        "getrlimit setrlimit prlimit64 getrusage sysinfo uname getrandom",
    ),
    _group(
        "users and groups",
        "Asking who one is; programs that set the user they already are, and container runtimes that set the pod's own"
        " when the list is already in force. Becoming another needs capabilities that no pod has.",
        "getuid geteuid getgid getegid getgroups getresuid getresgid setuid setgid setreuid setregid setresuid"
        " setresgid setgroups capget capset",
    ),
    _group(
        "further restrictions of oneself",
        "A process may narrow its own rights.",
        "seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self",
    ),
    _group(
        "pairs of connected sockets",
        "`multiprocessing` and `asyncio`.",
        "socketpair",
        when=((Argument(0, _UNIX),),),
    ),
    _group(
        "sockets",
        "Unix sockets (the link to the host, DataLoader workers), TCP and UDP (gloo and NCCL on loopback, the only"
        " interface), and the routing part of netlink, by which `getifaddrs` lists interfaces. No raw sockets and no"
        " other family: VSOCK would reach past the network namespace to the hypervisor, ALG and the rare protocols"
        " load kernel modules.",
        "socket",
        when=(
            (Argument(0, _UNIX),),
            *(
                (Argument(0, family), Argument(1, kind, _KIND), Argument(2, protocol))
                for family in (_INET, _INET6)
                for kind, protocol in ((_STREAM, 0), (_STREAM, _TCP), (_DATAGRAM, 0), (_DATAGRAM, _UDP))
            ),
            (Argument(0, _NETLINK), Argument(2, 0)),
        ),
    ),
    _group(
        "using sockets",
        "What a socket of an allowed family is for.",
        "bind connect listen accept accept4 getsockname getpeername getsockopt setsockopt sendto sendmsg sendmmsg"
        " recvfrom recvmsg recvmmsg shutdown",
    ),
)

REFUSED: Sequence[Group] = (
    _group(
        "other processes' memory",
        "Debugging, reading and writing another process, taking its descriptors: the learner's processes have no reason"
        " to, and ptrace has a long record of kernel bugs.",
        "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp pidfd_getfd move_pages"
        " migrate_pages",
    ),
    _group(
        "page faults handled by a program",
        "Holds the kernel still in the middle of a copy: part of most exploits of races.",
        "userfaultfd",
    ),
    _group(
        "io_uring",
        "The kernel's largest source of exploits in years.",
        "io_uring_setup io_uring_enter io_uring_register",
    ),
    _group(
        "programs and counters in the kernel",
        "Code in the kernel, and counters that show what neighbours do.",
        "bpf perf_event_open lookup_dcookie",
    ),
    _group(
        "keys",
        "Key rings know no namespaces: keys of one pod would be seen in another.",
        "keyctl add_key request_key",
    ),
    _group(
        "mounts",
        "The pod's files are as the host laid them out.",
        "mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick move_mount open_tree mount_setattr quotactl"
        " quotactl_fd swapon swapoff",
    ),
    _group("namespaces", "As with `clone`: no new ones, no others' ones.", "unshare setns"),
    _group(
        "files by handle",
        "A handle names any file of a disk, inside the pod's mounts or not.",
        "name_to_handle_at open_by_handle_at",
    ),
    _group(
        "asynchronous reads of the old kind",
        "All processes of the host share `fs.aio-max-nr`: one pod could take it from every other one. Nothing in the"
        " lab image needs them.",
        "io_setup io_submit io_getevents io_pgetevents io_cancel io_destroy",
    ),
    _group(
        "watching files",
        "`fs.inotify` counts for each user of the host, and nothing in the lab image watches files.",
        "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch",
    ),
    _group("watching all of a disk", "Sees what others do on it.", "fanotify_init fanotify_mark"),
    _group(
        "flushing whole disks",
        "Waits for, and causes, everybody's writes; `fsync` of one's own file is allowed.",
        "sync syncfs",
    ),
    _group("the clock", "It belongs to the host.", "clock_settime settimeofday adjtimex clock_adjtime"),
    _group(
        "the kernel itself",
        "Modules, another kernel, restarts, its log, its accounting, its ports and its names.",
        "init_module finit_module delete_module create_module get_kernel_syms query_module kexec_load kexec_file_load"
        " reboot syslog acct iopl ioperm sethostname setdomainname nfsservctl vhangup uselib ustat sysfs _sysctl",
    ),
    _group(
        "rare ways to memory",
        "Nothing in the lab image uses them, and each had its kernel bugs: user pages lent to a pipe, pages in another"
        " order, 16-bit segments, memory that the kernel itself cannot read.",
        "vmsplice remap_file_pages modify_ldt memfd_secret",
    ),
    _group(
        "message queues",
        "Kernel memory that no limit of the pod counts well; Python's queues are pipes.",
        "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr msgget msgsnd msgrcv msgctl",
    ),
    _group(
        "scheduling that cannot be looked at",
        "The policy lies in memory; `sched_setscheduler` does the same where it may.",
        "sched_setattr",
    ),
    _group("users of file systems", "Set by NFS servers, and by nobody else.", "setfsuid setfsgid"),
)
"""What a reader may look for in the list above and not find; refused like every name that stands nowhere."""


def profile() -> Mapping[str, Any]:
    """The profile, as Docker and its relatives read it."""
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "archMap": [{"architecture": name, "subArchitectures": []} for name in ARCHITECTURES],
        "syscalls": list(_rules()),
    }


@cache
def profile_text() -> str:
    """The profile as one line of JSON: what an engine's option `seccomp=` takes."""
    return json.dumps(profile(), separators=(",", ":"))


def _rules() -> Iterator[Mapping[str, Any]]:
    for group in ALLOWED:
        action: Mapping[str, Any] = (
            {"action": "SCMP_ACT_ERRNO", "errnoRet": group.error} if group.error else {"action": "SCMP_ACT_ALLOW"}
        )
        for arguments in group.when or ((),):
            conditions = [
                {"index": one.index, "value": one.mask, "valueTwo": one.value, "op": "SCMP_CMP_MASKED_EQ"}
                for one in arguments
            ]
            yield {"names": list(group.names), **action, "args": conditions}


if __name__ == "__main__":
    json.dump(profile(), sys.stdout, indent=2)
    sys.stdout.write("\n")
