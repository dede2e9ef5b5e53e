"""On a GPU host: what a pod finds in the GPU's memory of what an earlier pod wrote there.

    python bench/gpu_memory_clean.py [--json FILE]

A learner's pod fills all global memory with a mark, and the shared memory of the multiprocessors, and ends by itself,
or holds on until its time is over and it is killed. The next pod counts marks in shared memory, then takes all global
memory, unwritten, and counts marks there. As a control, the first pod reads shared memory as the second does: marks of
one's own stay there. Prints a table; exits 1 where another pod's mark was found, or a pod did not do its part.
"""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

from gpu_containment import MARK, READ_BACK, _grade, _said

from checks.registry import Registry
from grader_service.host.facts import find_gpus
from grader_service.host.sandboxes import open_runner
from grader_service.labs.catalogue import load_lab
from grader_service.settings import Settings

LEARNER_S = 60
_SPIN = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""
_KERNELS = r"""
import ctypes
import torch
_PTX = b'''
.version 7.0
.target sm_70
.address_size 64
.extern .shared .align 4 .b8 part[];
.visible .entry mark()
{
  .reg .pred %p; .reg .b32 %i, %n, %a, %b, %v;
  mov.u32 %i, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %b, part; mov.u32 %v, 0x5EC12E7;
AGAIN:
  setp.ge.u32 %p, %i, 11264;
  @%p bra DONE;
  shl.b32 %a, %i, 2; add.u32 %a, %a, %b; st.volatile.shared.u32 [%a], %v;
  add.u32 %i, %i, %n;
  bra AGAIN;
DONE:
  ret;
}
.visible .entry count(.param .u64 found)
{
  .reg .pred %p; .reg .b32 %i, %n, %a, %b, %v; .reg .b64 %f;
  ld.param.u64 %f, [found]; cvta.to.global.u64 %f, %f;
  mov.u32 %i, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %b, part;
AGAIN:
  setp.ge.u32 %p, %i, 11264;
  @%p bra DONE;
  shl.b32 %a, %i, 2; add.u32 %a, %a, %b; ld.volatile.shared.u32 %v, [%a];
  setp.ne.u32 %p, %v, 0x5EC12E7;
  @%p bra NEXT;
  red.global.add.u32 [%f], 1;
NEXT:
  add.u32 %i, %i, %n;
  bra AGAIN;
DONE:
  ret;
}
\0'''
torch.zeros(1, device="cuda")  # makes the context
_cuda = ctypes.CDLL("libcuda.so.1")
_module = ctypes.c_void_p()
print("RESULT module", _cuda.cuModuleLoadData(ctypes.byref(_module), ctypes.c_char_p(_PTX)))
def launch(name, *pointers):
    function = ctypes.c_void_p()
    said = [_cuda.cuModuleGetFunction(ctypes.byref(function), _module, name)]
    values = [ctypes.c_uint64(pointer) for pointer in pointers]
    given = (ctypes.c_void_p * max(1, len(values)))(*[ctypes.addressof(value) for value in values])
    said.append(_cuda.cuLaunchKernel(function, 4096, 1, 1, 256, 1, 1, 45056, None, given if values else None, None))
    torch.cuda.synchronize()
    assert said == [0, 0], said
def marks_in_shared_memory():
    found = torch.zeros(1, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    launch(b"count", found.data_ptr())
    return int(found)
"""
_MARK_SHARED = """
launch(b"mark")
print("RESULT own marks in shared memory:", marks_in_shared_memory())
"""
_FIRST = _KERNELS + _MARK_SHARED + MARK
_SECOND = _KERNELS + 'print("RESULT marks in shared memory:", marks_in_shared_memory())\n' + READ_BACK
"""Shared memory first: whatever runs before may overwrite it."""
WAYS = {"ends": _FIRST, "killed": _FIRST + _SPIN}
_LEFT = re.compile(r"RESULT left a mark in (\d+) GiB")
_OWN = re.compile(r"RESULT own marks in shared memory: (\d+)")
_FOUND = re.compile(r"RESULT marks found: (\d+) in (\d+) GiB")
_SHARED = re.compile(r"RESULT marks in shared memory: (\d+)")


def main() -> int:
    """0 when every pod did its part and none found a mark."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    gpu = find_gpus()[0]
    rows = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        lab = load_lab("dali-pipelines", Registry())
        runner = open_runner("docker", lab.image, Settings(state_dir=Path(folder)), gpu)
        path = Path(folder, "submission.py")
        print(f"{gpu.model}, driver {gpu.driver}\n")
        print("| first pod | GiB marked | GiB read | marks found | own marks in shared memory | another's |")
        print("|---|---|---|---|---|---|")
        for way, source in WAYS.items():
            said = []
            for one in (source, _SECOND):
                path.write_text(one)
                said.append("\n".join(_said(_grade(path, runner, gpu, LEARNER_S))))
            left, found = _LEFT.search(said[0]), _FOUND.search(said[1])
            own, shared = _OWN.search(said[0]), _SHARED.search(said[1])
            row = {
                "first_pod": way,
                "gib_marked": int(left[1]) if left else 0,
                "gib_read": int(found[2]) if found else 0,
                "marks_found": int(found[1]) if found else None,
                "own_shared_marks": int(own[1]) if own else 0,
                "shared_marks_found": int(shared[1]) if shared else None,
            }
            rows.append({**row, "said": said})
            print("|", " | ".join(map(str, row.values())), "|", flush=True)
    told = {"gpu": gpu.model, "driver": gpu.driver, "rows": rows}
    if options.json is not None:
        options.json.write_text(json.dumps(told, indent=1))
    parts = ("gib_marked", "gib_read", "own_shared_marks")
    clean = (row["marks_found"] == 0 and row["shared_marks_found"] == 0 for row in rows)
    return 0 if all(clean) and all(row[part] for row in rows for part in parts) else 1


if __name__ == "__main__":
    sys.exit(main())
