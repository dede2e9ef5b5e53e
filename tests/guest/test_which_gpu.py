"""The clean room says which GPU it was given."""

import pytest

from sandbox.guest.trusted.clean_room import which_gpu


def test_a_pod_without_a_gpu_says_why(lab_child):
    """As CUDA words it."""
    uuid, problem = lab_child(which_gpu)
    assert uuid is None
    assert problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [("CUDA error: out of memory", None), ("no CUDA-capable device", "RuntimeError: no CUDA-capable device")],
)
def test_memory_that_the_learner_has_taken_is_no_problem_of_the_host(lab_child, text, problem):
    """Or whoever fills the GPU would have every failure for ours."""

    def ask():
        import torch

        def refuse():
            raise RuntimeError(text)

        torch.cuda.synchronize = refuse
        return which_gpu()

    assert tuple(lab_child(ask)) == (None, problem)


def test_the_uuid(lab_child):
    """As text."""

    def ask():
        from types import SimpleNamespace

        import torch

        torch.cuda.synchronize = lambda: None
        torch.cuda.get_device_properties = lambda _device: SimpleNamespace(uuid="0a1b")
        return which_gpu()

    assert tuple(lab_child(ask)) == ("0a1b", None)
