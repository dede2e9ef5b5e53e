"""DALI Proxy as the documentation shows it, and as it goes wrong."""

import pytest

from checks.dali_proxy.check import dali_proxy
from grader_service.model.verdict import Outcome, Tier
from tests.checks.brief import assert_brief
from tests.checks.claims.conftest import evidence_with
from tests.checks.claims.jpegs import START
from tests.checks.judged import judged
from tests.factories import a_discovery

CHECK = dali_proxy
PIPELINE = """
from nvidia.dali.plugin.pytorch.experimental import proxy as dali_proxy

# The server looks every five seconds whether it is to stop; that is long for a test.
if not hasattr(dali_proxy.DALIServer, "slow"):
    dali_proxy.DALIServer.slow = dali_proxy.DALIServer._get_input_batches
    dali_proxy.DALIServer._get_input_batches = lambda self, most, timeout=None: self.slow(most, timeout and 0.1)


@pipeline_def(batch_size=6, num_threads=1, device_id=0)
def pipeline():
    jpegs = fn.external_source(name="images", no_copy=True)
    images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(16, 16))
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT)


def read(path):
    return np.fromfile(path, dtype=np.uint8)


pipe = pipeline(prefetch_queue_depth=4)
"""
LOOP = """
with dali_proxy.DALIServer(pipe) as server:
    dataset = ImageFolder(dataset_dir, transform=server.proxy, loader=read)
    loader = dali_proxy.DataLoader(server, dataset, batch_size=6, num_workers=1, shuffle=True, drop_last=True)
    for images, labels in loader:
        break
"""
TORCH = LOOP.replace("dali_proxy.DataLoader(server, ", "DataLoader(").replace(
    "        break", "        images = server.produce_data(images)\n        break"
)
WHOLE = START + PIPELINE + LOOP
SERVER = START + PIPELINE + "server = dali_proxy.DALIServer(pipe)\n"
UNSTOPPED = SERVER + "server.start_thread()\n" + LOOP.replace("with dali_proxy.DALIServer(pipe) as server:", "if True:")
GOOD = {
    "the proxy's loader": WHOLE,
    "torch's loader": START + PIPELINE + TORCH,
    "in order": WHOLE.replace("shuffle=True, ", ""),
    "by hand": UNSTOPPED.replace("(pipe)", "(pipe, deterministic=True)") + "server.stop_thread()\n",
    "only the loader is left": WHOLE + "del server, pipe\n",
}
BAD = {
    "not at all": (START, {}, "not_used"),
    "imported only": (START + PIPELINE, {}, "not_used"),
    "a server without a loader": (SERVER, {}, "no_loader"),
    "a loader beside it": (
        SERVER + "loader = DataLoader(ImageFolder(dataset_dir, transform), batch_size=6)\n",
        {},
        "no_loader",
    ),
    "no workers": (START + PIPELINE + TORCH.replace("num_workers=1", "num_workers=0"), {}, "no_workers"),
    "too few workers": (WHOLE, {"min_workers": 4}, "no_workers"),
    "never stopped": (UNSTOPPED, {}, "not_stopped"),
    "on the CPU": (WHOLE.replace('device="mixed"', 'device="cpu"'), {}, "wrong_device"),
    "files gone": (WHOLE + "import shutil\nshutil.rmtree(dataset_dir)\n", {}, "no_batch"),
}


@pytest.mark.parametrize("name", GOOD)
def test_proxies_that_work_pass_as_claims(evidence, name):
    """A batch comes through the server again, with the labels that its sampler asked for."""
    result = judged(CHECK, evidence[name])
    assert (result.code, result.tier) == ("proxy.ok", Tier.CLAIMS), (result.feedback, result.details)
    assert "in the order of its sampler" in result.feedback
    assert_brief(result)


@pytest.mark.parametrize("name", BAD)
def test_other_uses_do_not(evidence, name):
    """What is missing or wrong has its own code; a batch that cannot be drawn again is no failure."""
    _, params, reason = BAD[name]
    result = judged(CHECK, evidence[name], **params)
    assert result.code == f"proxy.{reason}", (result.feedback, result.details)
    assert result.outcome is (Outcome.UNVERIFIED if reason == "no_batch" else Outcome.FAILED)
    assert_brief(result)


@pytest.mark.parametrize("name", ["not at all", "a server without a loader", "never stopped"])
@pytest.mark.parametrize(("needs_gpu", "score"), [("", 0.0), ("a kernel", None)])
def test_what_code_that_stopped_did_not_come_to_is_not_held_against_it(evidence, name, needs_gpu, score):
    """What stopped it is told once, by the run; where only a GPU was missing, nothing is lost."""
    stopped = a_discovery(ran="raised", needs_gpu=needs_gpu)
    result = judged(CHECK, evidence[name].model_copy(update={"discovery": stopped}))
    assert (result.outcome, result.code, result.score) == (Outcome.SKIPPED, "run.not_reached", score)


def test_the_workers_of_a_loader_are_seen_however_the_code_ended(evidence):
    """What is there already would not have changed."""
    found = evidence["no workers"].model_copy(update={"discovery": a_discovery(ran="raised")})
    assert judged(CHECK, found).code == "proxy.no_workers"


def test_labels_of_another_order_are_seen(evidence):
    """Labels that are not those of the sampler's indices fail."""
    seen = dict(evidence["in order"].probe("dali_proxy").observations)
    seen["batch"] = seen["batch"] | {"labels": [1 - label for label in seen["batch"]["labels"]]}
    result = judged(CHECK, evidence_with("dali_proxy", observations=seen))
    assert result.code == "proxy.order"
    assert_brief(result)
