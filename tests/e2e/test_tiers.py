"""Whole submissions whose graph cannot be carried, with real DALI: the tier, the code, and what the pixels showed."""

import pytest

from tests.e2e.submissions import COMMON, END, GRAPH, external

pytestmark = pytest.mark.integration

PROXY = """
from nvidia.dali.plugin.pytorch.experimental import proxy


@pipeline_def(num_threads=2, device_id=0)
def pipeline():
    images = fn.decoders.image(fn.external_source(name="images", no_copy=True), device="mixed")
    return fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW")


class Encoded(torch.utils.data.Dataset):
    def __init__(self, folder, decode):
        self.paths, self.decode = files(folder), decode

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.decode(np.fromfile(self.paths[index], dtype=np.uint8))


def build_dali_iterator(folder, batch_size):
    server = proxy.DALIServer(pipeline(batch_size=batch_size))
    server.start_thread()
    return proxy.DataLoader(server, Encoded(folder, server.proxy), batch_size=batch_size, num_workers=1)
"""

PYTHON_FUNCTION = """
@pipeline_def(num_threads=2, device_id=0)
def pipeline(folder):
    jpegs, labels = fn.readers.file(files=files(folder), name="Reader")
    images = fn.decoders.image(jpegs, device="cpu")
    images = fn.python_function(images, function=lambda image: image[:, ::-1].copy())
    return fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW"), labels


def build_dali_iterator(folder, batch_size):
    return DALIGenericIterator(pipeline(folder, batch_size=batch_size), ["data", "label"], reader_name="Reader")
"""

DYNAMIC = """
import torch
import nvidia.dali.experimental.dynamic as ndd


class Epochs:
    def __init__(self, folder, batch_size):
        self.reader, self.batch_size = ndd.readers.File(files=files(folder)), batch_size

    def __iter__(self):
        for jpegs, labels in self.reader.next_epoch(batch_size=self.batch_size):
            images = ndd.decoders.image(jpegs, device="cpu")
            yield ndd.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW"), labels


build_dali_iterator = Epochs
"""


@pytest.mark.parametrize(
    "code",
    [pytest.param(external(), id="external_source"), pytest.param(GRAPH + PROXY, id="proxy", marks=pytest.mark.slow)],
)
def test_code_that_feeds_a_graph_is_fast_in_tier_b(graded, code):
    """New images come out of the factory's iterator while it runs; that the GPU decoded them a rehearsal cannot see."""
    checks, evidence = graded(COMMON, code, END)
    ratio, batch = checks["throughput_ratio"], checks["cuda_batch"]
    assert (ratio.outcome, ratio.code, ratio.tier) == ("unverified", "ratio.not_seen", "B"), ratio.feedback
    assert evidence.measurement.decision.outcome == "passed"
    assert (batch.outcome, batch.code, batch.tier) == ("passed", "batch.ok", "B"), batch.feedback
    assert "it timed `build_dali_iterator` itself" in ratio.feedback
    content = evidence.measurement.content
    assert (content.problem, content.kind.value, content.failed_audits) == (None, "full", 0)
    assert content.distinct >= 0.9 * content.delivered
    assert [(entry.tier, entry.problem) for entry in evidence.measurement.refused] == [("A", "operator_not_allowed")]


@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        pytest.param(GRAPH + PYTHON_FUNCTION, "not_serializable", id="python_function", marks=pytest.mark.slow),
        pytest.param(DYNAMIC, "dynamic_mode", id="dynamic_mode"),
    ],
)
def test_code_without_a_graph_is_measured_on_the_cpu(graded, code, refusal):
    """Python functions and operators that run one by one prove their images all the same, but are no CUDA batch."""
    checks, evidence = graded(COMMON, code, END)
    ratio = checks["throughput_ratio"]
    assert (ratio.code, ratio.tier) == ("ratio.not_seen", "B"), ratio.feedback
    assert [(entry.tier, entry.problem) for entry in evidence.measurement.refused] == [("A", refusal)]
    assert evidence.measurement.content.problem is None
    assert checks["cuda_batch"].code == "batch.not_cuda"


@pytest.mark.slow
def test_files_kept_in_memory_are_measured_cold(graded):
    """Bytes that were read when the iterator was built are never new while it runs: it is built anew, in tier C."""
    checks, evidence = graded(COMMON, external("np.fromfile(path, dtype=np.uint8)", "{}"), END)
    ratio = checks["throughput_ratio"]
    assert (ratio.code, ratio.tier) == ("ratio.not_seen", "C"), ratio.feedback
    assert [entry.tier for entry in evidence.measurement.refused] == ["A", "B"]
    assert evidence.measurement.content.problem is None


@pytest.mark.slow
def test_code_that_is_too_slow_is_held_against_what_the_host_can_show(graded):
    """Our own graph is timed on the same job, as for graphs: where nobody could pass, nobody fails."""
    slow = external(opened="(time.sleep(0.02), np.fromfile({}, dtype=np.uint8))[1]")
    checks, evidence = graded("import time", COMMON, slow, END, threshold=1.1)
    ratio, host = checks["throughput_ratio"], evidence.measurement.host
    assert (ratio.outcome, ratio.code, ratio.tier) == ("failed", "ratio.too_low", "B"), ratio.feedback
    assert host.ratio > 2 * evidence.measurement.decision.interval.high


def test_without_a_factory_nothing_is_decided(graded):
    """What cannot be run again is no failure: the feedback names the function to define."""
    code = external().replace("build_dali_iterator", "make_iterator")
    checks, evidence = graded(COMMON, code, END.replace("build_dali_iterator", "make_iterator"))
    for check in checks.values():
        assert (check.outcome, check.tier) == ("unverified", "D")
    assert checks["throughput_ratio"].code == "ratio.not_carried"
    assert "build_dali_iterator(dataset_dir, batch_size)" in checks["throughput_ratio"].feedback
    assert [entry.problem for entry in evidence.measurement.refused][1:] == ["no_factory", "no_factory"]
