"""H: processes that take the shim's place, and answer the grader's requests themselves."""

from tests.corpus.case import NOT_REACHED, Cheat
from tests.corpus.cheats.h_frames import SPEAK
from tests.corpus.parts import DATASET, LOADER, joined
from tests.corpus.parts_files import FILES, PICTURES, file_cheat
from tests.corpus.parts_forgeries import CONTENT, timed_cheat
from tests.e2e.submissions import END, external

_SERVE = """
import random


def exactly(host, size):
    data = b""
    while len(data) < size:
        part = host.recv(size - len(data))
        if not part:
            os._exit(0)
        data += part
    return data


def serve(host, deliver):
    \"\"\"Says that there is a pipeline, then answers what the grader asks of it.\"\"\"
    pipeline = {"name": "dali_iter", "iterator_type": "DALIGenericIterator", "batch_size": 16, "num_threads": 4,
                "graph_problem": "it has an operator that cannot be serialized"}
    batch = {"status": "present", "type": "Tensor", "shape": [16, 3, 144, 192], "dtype": "uint8", "device": "cuda:0"}
    claim = {"status": "present", "value": 9000.0, "shown": "9000.0"}
    host.sendall(RAN + frame(discovered(
        dataset_dir={"status": "present", "path": os.path.abspath("dataset"), "shown": "dataset"},
        pytorch_throughput=claim, dali_throughput=claim, first_batch=batch, pipelines=[pipeline],
        factories=["build_dali_iterator"],
    )))
    while True:
        text, blob = struct.unpack(">II", exactly(host, 8))
        request = json.loads(exactly(host, text))
        exactly(host, blob)
        if request["kind"] == "prepare_dali":
            answer = {"kind": "dali_ready", "type": "DALIGenericIterator", "shape": [16, 3, 144, 192],
                      "dtype": "uint8", "device": "cuda"}
            keep(request["folder"])
            host.sendall(frame(answer))
        elif request["kind"] == "deliver_dali":
            for _ in range(request["batches"]):
                host.sendall(deliver())
            host.sendall(frame({"kind": "delivered"}))
        else:
            host.sendall(frame({"kind": "arm_problem", "text": "not now"}))


def keep(folder):
    \"\"\"Decodes what the grader shows first, as an honest iterator would.\"\"\"
    from glob import glob
    from PIL import Image
    for path in glob(folder + "/**/*.jp*g", recursive=True):
        kept.append(Image.open(path).convert("RGB").resize((192, 144)).tobytes())


kept = []
images = {"kind": "images", "shape": [16, 144, 192, 3]}
"""

_INVENTORY = """
told = {"root": "dataset", "distinct": 5000, "rejected": {}, "examples": [], "entries_seen": 5000}
scanned = frame({"kind": "scanned", "scan": told})
"""


def _speaker(case_id: str, title: str, *parts: str, **more: object) -> Cheat:
    made = joined(FILES, PICTURES, SPEAK, _SERVE, *parts)
    return timed_cheat(case_id, title, made, steps=("pipeline", "benchmark"), threshold=CONTENT, **more)


CASES = (
    file_cheat(
        "H03-inventory",
        "the scanner's answer, written on the learner's own connection",
        SPEAK,
        _INVENTORY,
        "line().sendall(RAN + scanned)\n",
        code=NOT_REACHED,
    ),
    file_cheat(
        "H03-inventory-after",
        "the same, after an answer of one's own",
        SPEAK,
        _INVENTORY,
        """
        where = {"status": "present", "path": os.path.abspath("dataset"), "shown": "dataset"}
        claim = {"status": "present", "value": 100.0, "shown": "100.0"}
        answer = discovered(dataset_dir=where, pytorch_throughput=claim, factories=["build_pytorch_loader"])
        line().sendall(RAN + frame(answer) + scanned * 3)
        time.sleep(60)
        """,
    ),
    _speaker(
        "H04-noise",
        "images that were never decoded, sent as delivered",
        "serve(line(), lambda: frame(images, os.urandom(16 * 144 * 192 * 3)))\n",
        codes=("ratio.wrong_content", "ratio.replayed"),
    ),
    _speaker(
        "H04-counters",
        "a million images that stand in the frame's words alone",
        'serve(line(), lambda: frame({"kind": "images", "shape": [1000000, 144, 192, 3]}))\n',
        codes=("ratio.not_carried",),
    ),
    _speaker(
        "H10-child",
        "a forked process that answers first, and goes on beside its parent",
        """
        if os.fork() == 0:
            serve(line(), lambda: frame(images, os.urandom(16 * 144 * 192 * 3)))
        time.sleep(1)
        """,
        codes=("ratio.not_carried", "ratio.wrong_content", "ratio.replayed"),
    ),
    file_cheat(
        "H10-second-line",
        "a second connection to the grader, with an answer of its own",
        SPEAK,
        """
        for name in ("host.sock", "guest.sock", "link.sock"):
            second = socket.socket(socket.AF_UNIX)
            try:
                second.connect(f"/grader/link/{name}")
                second.sendall(frame({"kind": "scanned", "scan": {"root": "dataset", "distinct": 5000}}))
            except OSError:
                pass
        """,
    ),
    _speaker(
        "H12-graph",
        "a pickled command in the place of a graph",
        """
        import pickle

        class Command:
            def __reduce__(self):
                return os.system, ("touch /tmp/was-run",)

        blob = pickle.dumps(Command())
        pipeline = {"name": "dali_iter", "batch_size": 16, "num_threads": 4, "graph": 0}
        batch = {"status": "present", "type": "Tensor", "shape": [16, 3, 9, 9], "dtype": "uint8", "device": "cuda:0"}
        whole = discovered(pipelines=[pipeline], first_batch=batch, graph_sizes=[len(blob)])
        line().sendall(RAN + frame(whole, blob))
        time.sleep(60)
        """,
        target="cuda_batch",
        codes=("batch.not_carried",),
    ),
    _speaker(
        "H17-replay",
        "the images of an earlier request as the answer to every later one",
        """
        serve(line(), lambda: frame(images, b"".join(random.choices(kept, k=16))))
        """,
        codes=("ratio.replayed", "ratio.stale", "ratio.not_carried"),
    ),
    timed_cheat(
        "H19-observed",
        "an iterator that works on its own folder and pretends on any other",
        joined(
            DATASET,
            LOADER,
            """
            def files(folder):
                return sorted(glob.glob(f"{folder}/**/*.jpg", recursive=True))
            """,
            external(),
            """
            honest = build_dali_iterator

            class Pretended:
                def __iter__(self):
                    while True:
                        yield [{"data": torch.rand(16, 3, 144, 192)}]

            def build_dali_iterator(folder, batch_size):
                return honest(folder, batch_size) if os.path.samefile(folder, dataset_dir) else Pretended()
            """,
            END,
        ),
        ("ratio.wrong_content", "ratio.replayed", "ratio.not_carried"),
        steps=("pipeline", "benchmark"),
    ),
)
