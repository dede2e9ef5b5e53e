"""The clean room says which GPU it was given."""

from types import SimpleNamespace

import pytest

from sandbox.guest.trusted.clean_room import gpu_decoder, which_gpu


def test_a_pod_without_a_gpu_says_why(lab_child):
    """As CUDA words it."""
    uuid, problem = lab_child(which_gpu)
    assert uuid is None
    assert problem


@pytest.mark.parametrize(
    ("refusal", "uuid", "problem"),
    [
        ("CUDA error: out of memory", None, None),
        ("no CUDA-capable device", None, "RuntimeError: no CUDA-capable device"),
        ("", "0a1b", None),
    ],
)
def test_memory_that_the_learner_has_taken_is_no_problem_of_the_host(lab_child, refusal, uuid, problem):
    """Or whoever fills the GPU would have every failure for ours. Where CUDA refuses nothing the UUID comes as text."""

    def ask():
        import torch

        def synchronize():
            if refusal:
                raise RuntimeError(refusal)

        torch.cuda.synchronize = synchronize
        torch.cuda.get_device_properties = lambda _device: SimpleNamespace(uuid="0a1b")
        return which_gpu()

    assert lab_child(ask) == [uuid, problem]


def test_a_decoder_that_cannot_begin_is_none(lab_child):
    """Whatever is in its way: the graph needs one of its own, and says then what it lacks."""
    assert lab_child(gpu_decoder) is None
