"""Throws bytes at everything on the host that reads what strangers made: `python bench/fuzz.py all --minutes 30`.

Each reader of `tests/fuzz/readers.py` runs in a child process with a memory limit and a time limit per input, guided by
coverage where `atheris` is installed (`uv pip install atheris`), by chance alone where it is not. Inputs that crash one
are kept below `build/fuzz/READER/`, and the exit code is 1. What was found worth keeping stays in the corpus there.
"""

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import structlog

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fuzz.mutation import jumbled, mutated  # noqa: E402 - the project's root comes first
from tests.fuzz.readers import MOST_MIB, MOST_SECONDS, READERS, Reader  # noqa: E402

_STATUS = re.compile(r"#(\d+)\s+(?:INITED|NEW|REDUCE|pulse|DONE|RELOAD).*?cov: (\d+).*?corp: (\d+)")
_ADDRESS_SPACE = 4 << 30
"""Of a child: what libraries map, and far more than any input may cost."""
_STUCK = 12
"""Times the processor time that an input may cost: so long may it take on a machine with other work."""
_LATE_S = 60
"""For imports, and for what a first input prepares."""
_INSTRUMENTED = ("grader_service", "sandbox", "checks", "tarfile", "zipfile", "nbformat")


def main() -> int:
    """Fuzzes the readers one after another, or plays the child of one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader", choices=["all", *READERS])
    parser.add_argument("--executions", type=int, default=10_000_000, help="for each reader (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=30.0, help="for each reader, whichever is first (%(default)s)")
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "fuzz", help="corpora, crashes and results.json")
    parser.add_argument("--blind", action="store_true", help="without coverage, as where atheris is not installed")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        return _child(READERS[chosen.reader], chosen)
    results, path = {}, chosen.into / "results.json"
    chosen.into.mkdir(parents=True, exist_ok=True)
    for name in READERS if chosen.reader == "all" else [chosen.reader]:
        results[name] = _fuzz(READERS[name], chosen)
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**known, name: results[name]}, indent=1))
    crashed = [name for name, result in results.items() if result["crashes"]]
    executions = sum(result["executions"] for result in results.values())
    print(f"{len(results)} readers, {executions:,} executions; crashed: {', '.join(crashed) or 'none'}")
    return 1 if crashed else 0


def _fuzz(reader: Reader, chosen: argparse.Namespace) -> dict[str, object]:
    """Runs one child to its end; what it did."""
    folder = chosen.into / reader.name
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, reader.name, "--child", "--into", str(chosen.into)]
    command += ["--executions", str(chosen.executions), "--minutes", str(chosen.minutes)]
    before, started = set(folder.glob("crash-*")), time.monotonic()
    executions = coverage = corpus = 0
    shown = 0.0
    tail: list[str] = []
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [*command, *(["--blind"] if chosen.blind else [])],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment, cwd=ROOT,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        for line in child.stdout:
            if (status := _STATUS.match(line)) is None:
                tail = [*tail[-60:], line.rstrip()]
                continue
            executions, coverage, corpus = map(int, status.groups())
            if time.monotonic() - shown > 10:
                shown = time.monotonic()
                rate = executions / (shown - started)
                print(
                    f"{reader.name}: {executions:,} executions, {rate:,.0f}/s, coverage {coverage}, corpus {corpus}",
                    flush=True,
                )
    seconds = time.monotonic() - started
    crashes = sorted(
        str(path)
        for path in (*folder.glob("crash-*"), *folder.glob("timeout-*"), *folder.glob("oom-*"))
        if path not in before
    )
    if child.returncode and not crashes:
        crashes = [f"exit status {child.returncode}"]
    print(
        f"{reader.name}: {executions:,} executions in {seconds:.0f} s ({executions / seconds:,.0f}/s), "
        f"coverage {coverage}, corpus {corpus}, {'CRASHED ' + crashes[0] if crashes else 'no crash'}",
        flush=True,
    )
    if crashes:
        print("\n".join(line for line in tail if not line.startswith(("INFO", "==")))[-4000:], flush=True)
    return {
        "executions": executions, "seconds": round(seconds), "coverage": coverage, "corpus": corpus, "crashes": crashes,
        "guided": not chosen.blind,
    }  # fmt: skip


def _child(reader: Reader, chosen: argparse.Namespace) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))  # refusals are no news here
    folder = chosen.into / reader.name
    try:
        import atheris  # noqa: PLC0415 - optional, and it must be imported before what it instruments
    except ImportError:
        atheris = None
    if atheris is None or chosen.blind:
        return _by_chance(reader, chosen, folder)
    with atheris.instrument_imports(include=list(_INSTRUMENTED), enable_loader_override=False):
        read = reader.load()
        _warm(reader, read)

    def one(data: bytes) -> None:
        read(data)

    def change(data: bytes, most: int, seed: int) -> bytes:
        numbers = random.Random(seed)
        found = mutated(data, numbers) if numbers.random() < 0.8 else None
        return found if found is not None and len(found) <= most else atheris.Mutate(data, most)

    options = [
        sys.argv[0], f"-runs={chosen.executions}", f"-max_total_time={int(chosen.minutes * 60)}",
        f"-artifact_prefix={folder}/", f"-timeout={int(_STUCK * MOST_SECONDS)}", f"-max_len={reader.most_bytes}",
        f"-rss_limit_mb={_resident_mib() + 4 * MOST_MIB}", "-print_final_stats=1", "-len_control=0", "-reload=0",
        str(folder / "corpus"), str(ROOT / "tests" / "fuzz" / "seeds" / reader.name),
    ]  # fmt: skip
    atheris.Setup(options, one, **({"custom_mutator": change} if reader.is_json else {}))
    atheris.Fuzz()
    return 0


def _by_chance(reader: Reader, chosen: argparse.Namespace, folder: Path) -> int:
    """Seeds with random changes, without looking at what they reach."""
    read = reader.load()
    seeds = [path.read_bytes() for path in (*reader.seeds(), *(folder / "corpus").glob("*"))]
    _warm(reader, read)
    numbers, until, done = random.Random(), time.monotonic() + chosen.minutes * 60, 0
    while done < chosen.executions and time.monotonic() < until:
        data = numbers.choice(seeds)
        changed = mutated(data, numbers) if reader.is_json and numbers.random() < 0.8 else None
        data = (changed if changed is not None else jumbled(data, numbers, seeds))[: reader.most_bytes]
        try:
            read(data)
        except Exception:  # noqa: BLE001 - that is what is looked for
            traceback.print_exc()
            (folder / f"crash-{hash(data) & (1 << 64) - 1:016x}").write_bytes(data)
            return 1
        done += 1
        if done % 1000 == 0 or done == chosen.executions:
            print(f"#{done} pulse cov: 0 corp: {len(seeds)}", flush=True)
    return 0


def _warm(reader: Reader, read: Callable[[bytes], object]) -> None:
    """Everything that a first input imports or prepares; its cost is no input's."""
    started = time.monotonic()
    for path in reader.seeds()[:2]:
        try:
            read(path.read_bytes())
        except Exception:  # noqa: BLE001 - met again, and kept, when it counts
            print(f"the seed {path.name} fails", flush=True)
    assert time.monotonic() - started < _LATE_S


def _resident_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    raise SystemExit(main())
