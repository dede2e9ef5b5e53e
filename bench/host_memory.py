"""Peak memory of the grader's own process while pods print, send and write as much as they can.

    python bench/host_memory.py

Each submission is graded in Docker by a process of its own; its peak resident memory is the kernel's figure for that
process, its children's not counted in.
"""

import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

GRADER = str(Path(sys.executable).with_name("grader"))
SUBMISSIONS = {
    "nothing": "x = 1\n",
    "200 MB of output": "import os\nfor _ in range(3200): os.write(1, b'x' * 65536)\n",
    "reflections at every limit": "where_dali_wins = where_dali_loses = ['ä' * 100000] * 100000\n",
    "a frame that promises 4 GB": """
        import os, stat, struct
        for fd in range(3, 64):
            try:
                if stat.S_ISSOCK(os.fstat(fd).st_mode):
                    os.write(fd, struct.pack('>II', 2**32 - 1, 2**32 - 1))
            except OSError:
                pass
        """,
    "16 MB of valid frame": """
        import os, socket, stat, struct
        for fd in range(3, 64):
            try:
                if stat.S_ISSOCK(os.fstat(fd).st_mode):
                    s = socket.socket(fileno=os.dup(fd))
                    text = b'{"a":"' + b'x' * ((2 << 20) - 8) + b'"}'
                    s.sendall(struct.pack('>II', 2 << 20, 16 << 20) + text + bytes(16 << 20))
            except OSError:
                pass
        """,
    "100,000 files": """
        import os
        os.makedirs('d')
        for i in range(100_000):
            open(f'd/{i}.jpg', 'wb').close()
        dataset_dir = 'd'
        pytorch_throughput = 1.0
        """,
}


def main() -> None:
    """Grades each and prints peak memory."""
    for name, code in SUBMISSIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "submission.py")
            path.write_text(textwrap.dedent(code))
            script = (
                "import resource, subprocess, sys\n"
                f"code = subprocess.call([{GRADER!r}, 'grade', {str(path)!r}, '--device', 'cpu', '--steps', "
                "'baseline,reflection', '--json', '-'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, code)\n"
            )
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
            mib, exit_code = done.stdout.split()
            print(f"{name:<30} peak {int(mib):4d} MiB, exit code {exit_code}", flush=True)


if __name__ == "__main__":
    main()
