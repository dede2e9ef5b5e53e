"""D: graphs made by hand, and what an earlier run may have taught."""

import io
import tempfile
import zipfile
from pathlib import Path

from grader_service.measure.trial_shards import TrialShards
from grader_service.model.evidence import ImageSize
from tests.corpus.cheats.d_dali_arm import UNKNOWN, arm, of_graph
from tests.corpus.parts import DATASET, joined
from tests.corpus.parts_forgeries import forged, graph

EARLIER = "ab" * 16
"""Seed of an earlier run, as its verdict says."""
_PARTS, _PER_PART = 12, 128


def with_earlier_images() -> bytes:
    """A submission that brings all images of an earlier run along."""
    source = forged(
        """
        for number in range(1 << 40):
            first = open(files(self.folder)[0], "rb").read()
            yield known.get(first, other)[number % 8]
        """,
        """
        known, other = {}, None
        for part in range(12):
            paths = files(f"earlier/{part}")
            other = [decoded(paths[place : place + 16]) for place in range(0, len(paths), 16)]
            known[open(paths[0], "rb").read()] = other
        """,
    )
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("submission.py", source)
        shown = Path(folder, "shown")
        shown.mkdir()
        size = ImageSize(width=192, height=144, size_bytes=9000)
        with TrialShards(EARLIER, (size,), _PER_PART, _PARTS, shown) as shards:
            while (part := shards.make_next()) is not None:
                live = shown / shards.show()
                for path in sorted(live.rglob("*.jpg")):
                    archive.write(path, f"earlier/{part}/{path.relative_to(live)}")
    return buffer.getvalue()


HAND_MADE = """
from grader_guest.graph import model
from nvidia.dali import backend

plain = backend.Pipeline.SerializeToProtobuf


def by_hand(pipeline):
    graph = model.read(plain(pipeline))
    for operator in graph.operators:
        change(operator)
    return model.write(graph)


backend.Pipeline.SerializeToProtobuf = by_hand
"""

CASES = (
    arm(
        "D18",
        "a graph made by hand, in which one argument stands twice: one is read, the other runs",
        joined(
            DATASET,
            """
            def change(operator):
                if operator.name == "decoders__ImageRandomCrop":
                    tiny = model.Argument("random_area", "float", [0.08, 0.09], is_vector=True)
                    operator.arguments.append(tiny)
            """,
            HAND_MADE,
            graph(
                """
                images = fn.decoders.image_random_crop(
                    jpegs, device="mixed", output_type=types.RGB, random_area=[0.3, 1.0]
                )
                images = fn.resize(images, size=(144, 192))
                """
            ).split("first_batch")[0],
        ),
        ("ratio.not_carried",),
    ),
    of_graph(
        "D19",
        "an operator that reads files of whoever runs the graph, and a picture that shows them",
        """
        images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
        name = types.Constant(np.frombuffer(b"/etc/passwd", np.uint8), device="cpu")
        images = fn.resize(images, size=(144, 192)) + fn.cast(fn.io.file.read(name)[:1], dtype=types.FLOAT)
        """,
        ("ratio.not_carried",),
    ),
    arm(
        "D20",
        "all images of an earlier run, decoded beforehand",
        with_earlier_images,
        UNKNOWN,
        filename="submission.zip",
        limits={"max_cpus": 2},
        deadline_s=120.0,
    ),
)
