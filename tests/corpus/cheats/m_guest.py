"""M: the grader's own guest code under the learner's hands."""

from tests.corpus.cheats.d_dali_arm import UNKNOWN
from tests.corpus.parts import DATASET, GRAPH, joined
from tests.corpus.parts_forgeries import CONTENT, batch_cheat, slow_cheat, timed_cheat

FACTS = """
FIRST = {
    "status": "present", "type": "Tensor", "shape": [64, 3, 224, 224], "dtype": "torch.float32", "device": "cuda:0"
}
PIPELINE = {
    "name": "dali_iter", "iterator_type": "DALIGenericIterator", "batch_size": 64, "num_threads": 4,
    "prefetch_queue_depth": "2", "reader_name": "Reader", "graph": None, "graph_problem": "",
}
"""

CASES = (
    timed_cheat(
        "M04",
        "the guest's own modules replaced: facts, pipelines and deliveries are invented",
        joined(
            DATASET,
            FACTS,
            """
            import sys

            guest = "grader_guest.learner."
            observe, dali_arm = sys.modules[f"{guest}observe"], sys.modules[f"{guest}dali_arm"]
            plain = observe.namespace_facts
            observe.namespace_facts = lambda module: {
                **plain(module), "first_batch": FIRST, "factories": ["build_dali_iterator"]
            }
            observe.pipelines = lambda module, recorder: ([PIPELINE], [])


            class Invented:
                def __init__(self, factory, batch_size):
                    self.size = batch_size

                def prepare(self, folder, drain):
                    return {"type": "DALI", "shape": [self.size, 144, 192, 3], "dtype": "uint8", "device": "cuda"}

                def build(self, folder):
                    pass

                def deliver(self, link, batches):
                    for _ in range(batches):
                        images = os.urandom(self.size * 144 * 192 * 3)
                        link.send("images", images, shape=[self.size, 144, 192, 3])
                    link.send("delivered")


            dali_arm.DaliArm = Invented
            build_dali_iterator = Invented
            """,
        ),
        UNKNOWN,
        steps=("pipeline", "benchmark"),
        others={"cuda_batch": ("batch.not_proved",)},
        threshold=CONTENT,
        deadline_s=120.0,
    ),
    slow_cheat(
        "M09",
        "finalizers, exit handlers and signals that change the numbers at the end",
        """
        import atexit, signal, weakref


        def change(*args):
            globals().update(dali_throughput=9e9, pytorch_throughput=1.0)
            with open("verdict.json", "w") as file:
                file.write('{"status": "passed", "score": 100}')


        class Last:
            def __del__(self):
                change()


        last = Last()
        weakref.finalize(last, change)
        atexit.register(change)
        signal.signal(signal.SIGUSR1, change)
        del last
        """,
    ),
    batch_cheat(
        "M10",
        "finds what the guest knows through gc and frames, and corrects it",
        joined(
            DATASET,
            "import torch",
            GRAPH.replace("batch_size=16", "batch_size=8").replace('"mixed"', '"cpu"'),
            """
            import gc, sys

            for thing in gc.get_objects():
                if type(thing).__name__ == "PipelineRecord":
                    thing.batch_size, thing.output_devices = 64, ["gpu", "gpu"]
            frame = sys._getframe()
            while frame is not None:
                for value in list(frame.f_locals.values()):
                    if type(value) is dict and value.get("kind") == "discover":
                        value["device"] = "cuda"
                frame = frame.f_back
            first_batch = torch.zeros(64, 3, 224, 224).cuda()
            """,
        ),
        "batch.too_small",
    ),
    batch_cheat(
        "M11-facts",
        "json, print and stdout of the guest tell a story",
        joined(
            DATASET,
            FACTS,
            """
            import json, sys

            plain = json.dumps


            def dumps(value, **options):
                if value.get("kind") == "discovered":
                    value["discovery"].update(first_batch=FIRST, pipelines=[PIPELINE])
                return plain(value, **options)


            json.dumps = dumps
            print = sys.stdout.write = lambda *args, **options: 0
            """,
        ),
        "batch.not_carried",
    ),
    slow_cheat(
        "M11-counts",
        "the guest's messages say that the loader delivered one image",
        """
        import json

        plain = json.dumps


        def dumps(value, **options):
            if value.get("kind") == "window_done":
                value["images"] = 1
            return plain(value, **options)


        json.dumps = dumps
        """,
    ),
)
