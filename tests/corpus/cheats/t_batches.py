"""T: batches that are none, as `first_batch` and as what is timed."""

from tests.corpus.case import Cheat
from tests.corpus.cheats.d_dali_arm import UNKNOWN, forged_arm, of_graph
from tests.corpus.parts import DATASET, GRAPH, LOADER, joined
from tests.corpus.parts_forgeries import batch_cheat, forged


def first_batch(id_: str, title: str, made: str) -> Cheat:
    """A `first_batch` without a pipeline that delivered it."""
    return batch_cheat(id_, title, joined(DATASET, made), "batch.no_pipeline")


CASES = (
    first_batch(
        "T01",
        "an object with the attributes of a CUDA tensor",
        """
        class Batch:
            shape, ndim, is_cuda, device, dtype = (64, 3, 224, 224), 4, True, "cuda:0", "float32"

            def dim(self):
                return 4

            def size(self, axis=None):
                return self.shape if axis is None else self.shape[axis]


        first_batch = Batch()
        """,
    ),
    first_batch(
        "T02",
        "an object that isinstance takes for a tensor",
        """
        import torch


        class Kind(type):
            def __instancecheck__(cls, value):
                return True

            def __subclasscheck__(cls, value):
                return True


        class Batch(metaclass=Kind):
            shape, is_cuda, device, dtype = torch.Size((64, 3, 224, 224)), True, torch.device("cuda", 0), torch.float32

            @property
            def __class__(self):
                return torch.Tensor

            def dim(self):
                return 4


        first_batch = Batch()
        assert isinstance(first_batch, torch.Tensor)
        """,
    ),
    first_batch(
        "T03",
        "a tensor on the CPU whose class says that it is on the GPU",
        """
        import torch


        class Batch(torch.Tensor):
            is_cuda, device, shape, ndim = True, torch.device("cuda", 0), torch.Size((64, 3, 224, 224)), 4

            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                if getattr(function, "__name__", "") in ("dim", "ndimension"):
                    return 4
                return super().__torch_function__(function, types, args, kwargs or {})


        first_batch = torch.zeros(1).as_subclass(Batch)
        """,
    ),
    first_batch(
        "T04-first",
        "a fake tensor: shape and device without memory",
        """
        import torch
        from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

        nothing = torch.empty(64, 3, 224, 224, device="meta")
        first_batch = FakeTensor(FakeTensorMode(), nothing, torch.device("cuda", 0))
        """,
    ),
    forged_arm(
        "T04-timed",
        "fake tensors from the factory",
        """
        while True:
            yield [{"data": mode.from_tensor(torch.zeros(self.size, 144, 192, 3))}]
        """,
        "from torch._subclasses.fake_tensor import FakeTensorMode\nmode = FakeTensorMode()\n",
        codes=("ratio.not_carried",),
    ),
    first_batch(
        "T05-first",
        "one number seen as a batch",
        """
        import torch

        first_batch = torch.zeros(1).cuda().expand(16, 3, 224, 224)
        """,
    ),
    forged_arm(
        "T05-timed",
        "one number after the other, each seen as a batch",
        """
        while True:
            yield torch.rand(1).cuda().expand(self.size, 144, 192, 3)
        """,
        codes=UNKNOWN,
    ),
    forged_arm(
        "T06",
        "one decoded image seen as sixteen through strides of zero",
        """
        for paths in rounds(self.folder, self.size):
            image = decoded(paths[:1])[0].contiguous()
            yield image.as_strided((self.size, *image.shape), (0, *image.stride()))
        """,
        codes=("ratio.replayed",),
    ),
    forged_arm(
        "T07-garbage",
        "memory that nobody wrote",
        """
        while True:
            # As garbage of other work would be: something else each time.
            yield torch.empty(self.size, 144, 192, 3, dtype=torch.uint8).random_(0, 256)
        """,
        codes=UNKNOWN,
    ),
    forged_arm(
        "T07-constant",
        "one colour for each batch",
        """
        while True:
            yield torch.full((self.size, 144, 192, 3), random.randrange(256), dtype=torch.uint8)
        """,
        codes=UNKNOWN,
    ),
    of_graph(
        "T08-graph",
        "labels in the shape of images, by a graph",
        """
        unused = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
        images = fn.reshape(fn.one_hot(labels.gpu(), num_classes=96 * 96 * 3), shape=[96, 96, 3])
        images = images * 255.0 + fn.random.uniform(range=[0.0, 9.0], device="gpu")
        """,
        ("ratio.independent",),
        outputs="fn.shapes(unused)",
    ),
    first_batch(
        "T08-first",
        "a table of a thousand numbers for each image, with four dimensions",
        """
        import torch

        first_batch = torch.arange(16 * 1000.0).reshape(16, 1000, 1, 1).cuda()
        """,
    ),
    batch_cheat(
        "T09",
        "sixteen images when somebody looks, one at a time from then on",
        forged(
            """
            yield decoded(files(self.folder)[: self.size])
            while True:
                for path in files(self.folder):
                    yield decoded([path])
            """
        ),
        "batch.not_proved",
        plan={"block_s": 0.5},  # a window with so many batches that even one image of each would make sixteen
    ),
    batch_cheat(
        "T10-random",
        "random numbers of the right shape beside a pipeline with batches of eight",
        joined(
            DATASET, GRAPH.replace("batch_size=16", "batch_size=8"), "first_batch = torch.rand(64, 3, 96, 96).cuda()"
        ).replace("import glob", "import torch\nimport glob"),
        "batch.too_small",
    ),
    first_batch(
        "T10-loader",
        "the first batch comes from the DataLoader",
        f"{LOADER}first_batch = next(iter(loader))[0].cuda()",
    ),
    forged_arm(
        "T11",
        "one buffer, handed out and then written over by a thread",
        """
        while True:
            yield {"data": shared}
        """,
        """
        import threading

        shared = decoded(files(dataset_dir)[:16])


        def go_on():
            while True:
                shared.copy_(shared.roll((1, 3), (1, 2)).flip(2))


        threading.Thread(target=go_on, daemon=True).start()
        """,
        codes=UNKNOWN,
    ),
    forged_arm(
        "T12",
        "a batch that is decoded when somebody looks at it",
        """
        for paths in rounds(self.folder, self.size):
            yield Promise(paths)
        """,
        """
        class Promise:
            def __init__(self, paths):
                self.paths = paths

            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self, **options):
                for _ in range(10):  # a batch takes ten times as long as it should, after the clock was read
                    images = decoded(self.paths)
                return images.__dlpack__()


        dali_throughput = 9e9
        """,
        threshold=1.1,
    ),
    batch_cheat(
        "T13",
        "a pipeline on the CPU whose batch says that it is on the GPU",
        joined(
            DATASET,
            GRAPH.replace('device="mixed"', 'device="cpu"'),
            """
            import torch


            class Batch(torch.Tensor):
                is_cuda, device = True, torch.device("cuda", 0)


            first_batch = first_batch.as_subclass(Batch)
            """,
        ),
        "batch.not_cuda",
    ),
)
