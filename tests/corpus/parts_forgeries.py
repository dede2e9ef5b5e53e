"""Parts of forged submissions: a pipeline that cannot be carried, and what stands in its place when it is timed."""

import textwrap

from tests.corpus.case import Cheat, Content
from tests.corpus.parts import DATASET, GRAPH, LOADER, SLOW, SLOW_GRAPH, joined
from tests.e2e.submissions import COMMON, external

CONTENT = 0.02
"""A threshold that everybody reaches, so that nothing but what was delivered can fail."""

DECOY = """
dali_iter = build_dali_iterator(dataset_dir, 16)  # a real pipeline, which cannot be carried
first_batch = next(iter(dali_iter))


def decoded(paths):
    return torch.from_numpy(np.stack([np.asarray(Image.open(path).convert("RGB")) for path in paths]))


def one_round(folder, size):
    paths = files(folder)
    for place in range(0, len(paths) - size + 1, size):
        yield paths[place : place + size]


def rounds(folder, size):
    # Lists of paths without end: the same order in every round, so that any window of that length holds each once.
    while True:
        yield from one_round(folder, size)
"""


def forged(body: str, before: str = "") -> str:
    """A submission with a real pipeline beside a factory whose batches come from this generator's body.

    Args:
        body: statements that yield batches; `self.folder` and `self.size` are what the factory was given.
        before: what the body uses; a class `Forged` is defined after it.
    """
    made = f"""
class Forged:
    def __init__(self, folder, batch_size):
        self.folder, self.size = folder, batch_size

    def __iter__(self):
{textwrap.indent(textwrap.dedent(body).strip(chr(10)), " " * 8)}


build_dali_iterator = Forged
"""
    return joined(COMMON, external(), DECOY, before, made)


def timed_cheat(id_: str, title: str, content: Content, codes: tuple[str, ...] = SLOW, **more: object) -> Cheat:
    """What is tried against the benchmark's clock, with time for a slow measurement."""
    usual = {"steps": ("benchmark",), "target": "throughput_ratio", "deadline_s": 240.0}
    return Cheat(id_, title, content=content, codes=codes, **usual | more)


def slow_cheat(id_: str, title: str, *parts: str) -> Cheat:
    """A slow graph beside whatever is patched."""
    return timed_cheat(id_, title, joined(DATASET, LOADER, SLOW_GRAPH, *parts))


def forged_cheat(
    id_: str,
    title: str,
    body: str,
    before: str = "",
    *,
    codes: tuple[str, ...] = SLOW,
    photos: tuple[int, int] | None = None,
    **more: object,
) -> Cheat:
    """The same, tried by what `forged` makes of these statements; the other arguments are those of `timed_cheat`.

    With `photos` files have this width and height, and images are small: costly to decode, and soon sent.
    """
    made = forged(body, before)
    if photos:
        made = made.replace(".resize((192, 144))", f".resize({photos})")
        made = made.replace('.convert("RGB")', '.convert("RGB").resize((128, 96))')
    return timed_cheat(id_, title, made, codes, **more)


def batch_cheat(id_: str, title: str, content: Content, code: str, **more: object) -> Cheat:
    """A forged `first_batch`, or one of a pipeline that does not deserve it."""
    return Cheat(id_, title, content=content, steps=("pipeline",), target="cuda_batch", codes=(code,), **more)


def graph(images: str, *, threads: int = 2, branches: bool = False) -> str:
    """The lab's own pipeline, with these lines between the reader and the normalisation.

    With `branches` their `if` and `else` are DALI's conditionals.
    """
    lines = textwrap.indent(textwrap.dedent(images).strip("\n"), " " * 4)
    decode = '    images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)\n'
    own = GRAPH.replace(decode, "").replace("    images = fn.resize(images, size=(96, 96))\n", f"{lines}\n")
    own = own.replace("device_id=0", "device_id=0, enable_conditionals=True") if branches else own
    return own.replace("num_threads=2", f"num_threads={threads}")
