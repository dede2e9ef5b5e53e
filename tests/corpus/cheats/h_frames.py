"""H: frames that learner code writes on the grader's connection, each wrong in one respect.

What they say is what the grader would take from an honest end of the run, so that each passes where its one fault is
overlooked.
"""

from tests.corpus.case import NOT_REACHED, Cheat, Observed, Procedure
from tests.corpus.parts import REFLECTIONS, joined
from tests.corpus.parts_texts import text_cheat
from tests.corpus.world import World, collected_soon

SPEAK = """
import json, os, signal, socket, stat, struct, sys, time


def line():
    \"\"\"The one socket that this process was started with.\"\"\"
    for number in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                return socket.socket(fileno=os.dup(number))
        except OSError:
            continue


def frame(body, blob=b""):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return struct.pack(">II", len(text), len(blob)) + text + blob


def discovered(**told):
    names = ("dataset_dir", "pytorch_throughput", "dali_throughput", "where_dali_wins", "where_dali_loses")
    nothing = {name: {"status": "missing"} for name in (*names, "first_batch")}
    sizes = told.pop("graph_sizes", [])
    whole = {"ran": "completed", "duration_s": 1.0, **nothing, **told}
    return {"kind": "discovered", "discovery": whole, "graph_sizes": sizes}


def listed(texts):
    return {"status": "present", "items": texts}


RAN = frame({"kind": "ran"})
"""
"""Finds the grader's connection and speaks its language: `RAN` is what comes before what the code left behind."""

_TOLD = """
whole = discovered(where_dali_wins=listed(where_dali_wins), where_dali_loses=listed(where_dali_loses))
text = json.dumps(whole).encode()
del where_dali_wins, where_dali_loses
signal.setitimer(signal.ITIMER_REAL, 0)
line().sendall(RAN)
"""


def _frame(case_id: str, title: str, sent: str, **more: object) -> Cheat:
    content = joined(SPEAK, REFLECTIONS, _TOLD, sent, "time.sleep(1)\nos._exit(0)\n")
    return text_cheat(case_id, title, content, NOT_REACHED, deadline_s=180.0, **more)


_DROPS = _frame("H11-drops", "an answer that comes byte by byte, longer than anybody waits", """
    host, left = line(), frame(text)
    pause = 20.0 / len(left)
    for place in range(len(left)):
        host.sendall(left[place : place + 1])
        time.sleep(pause)
""", limits={"learner_timeout_s": 5.0})  # fmt: skip


def _late(world: World) -> Observed:
    """The answer takes 20 s, where the host waits for seven."""
    with collected_soon(world):
        return world.observe(_DROPS)


CASES = (
    _frame("H03-noise", "bytes of chance before the answer, on every descriptor that is open", """
        for number in range(3, 64):
            try:
                os.write(number, os.urandom(64))
            except OSError:
                pass
        line().sendall(frame(whole))
    """),
    _frame("H11-half", "half a frame, and the end of the process", "line().sendall(frame(text)[:-20])\n"),
    _frame("H11-prefix", "a frame that promises four gigabytes, and sends a megabyte of them", """
        line().sendall(struct.pack(">II", len(text), 2**32 - 1) + text + bytes(1 << 20))
        time.sleep(1)
    """),
    _frame(
        "H11-padded",
        "an answer padded with three megabytes of spaces",
        "line().sendall(frame(text + b' ' * (3 << 20)))\n",
    ),
    _frame("H11-blob", "an answer with more bytes beside it than any graph has", """
        whole["graph_sizes"] = [17 << 20]
        line().sendall(frame(whole, bytes(17 << 20)))
    """),
    Procedure(_DROPS.id, _DROPS.title, _late, codes=_DROPS.codes, target=_DROPS.target),
    _frame("H12-pickle", "a pickled answer, which runs a command where it is read", """
        import pickle

        class Command:
            def __reduce__(self):
                return os.system, ("touch /tmp/was-run",)

        line().sendall(frame(pickle.dumps([whole, Command()])))
    """),
    _frame("H13-twice", "an answer in which a key stands twice", """
        line().sendall(frame(text[:-1] + b', "kind": "discovered"}'))
    """),
    _frame("H13-deep", "an answer with three hundred lists in each other", """
        deep = b"[" * 300 + b"]" * 300
        line().sendall(frame(b'{"graph_sizes": ' + deep + b", " + text[1:]))
    """),
    _frame("H13-nested", "an answer with a hundred thousand lists in each other", """
        line().sendall(frame(b'{"graph_sizes": ' + b"[" * 100_000 + b"]" * 100_000 + b", " + text[1:]))
    """),
    _frame("H13-nan", "an answer that lasted no number of seconds", """
        line().sendall(frame(text.replace(b'"duration_s": 1.0', b'"duration_s": NaN')))
    """),
    _frame("H13-infinite", "an answer with a number that no float holds", """
        line().sendall(frame(text.replace(b'"duration_s": 1.0', b'"duration_s": 1e999')))
    """),
    _frame("H13-digits", "an answer with a number of four thousand digits", """
        line().sendall(frame(text.replace(b'"ran"', b'"exit_code": ' + b"7" * 4000 + b', "ran"')))
    """),
    _frame("H13-bytes", "an answer that is not UTF-8", """
        line().sendall(frame(text.replace(b"ResNet", b"Res\\xffNet")))
    """),
    _frame("H13-surrogate", "an answer with half a character, which no verdict could be written with", """
        line().sendall(frame(text.replace(b"ResNet", b"Res\\\\ud800Net")))
    """),
    _frame("H13-more", "an answer with a verdict beside it", """
        whole["discovery"]["verdict"] = {"status": "passed", "score": 4.0}
        line().sendall(frame(whole))
    """),
)  # fmt: skip
