"""What learners' code asks of CUDA and of GPU outputs, in a rehearsal."""

import pytest

pytestmark = pytest.mark.integration


def rehearsed(root):
    """Devices of tensors that were taken from `pipe.run()` in the ways of DALI's documentation."""
    import nvidia.dali.pipeline
    import torch
    from nvidia.dali import fn, pipeline_def

    from sandbox.guest.learner import rehearsal
    from sandbox.guest.learner.graphs import Recorder

    rehearsal.patch_torch(torch)
    Recorder(rehearse=True).patch(nvidia.dali.pipeline)

    @pipeline_def(batch_size=4, num_threads=1, device_id=0)
    def pipeline():
        jpegs, labels = fn.readers.file(file_root=str(root))
        return fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(32, 32)), labels

    pipe = pipeline()
    images, labels = pipe.run()
    whole, one, numbers = (
        torch.from_dlpack(images.as_tensor()),
        torch.utils.dlpack.from_dlpack(images[0]),
        torch.from_dlpack(labels.as_tensor()),
    )
    return {
        "devices": [str(tensor.device) for tensor in (whole, one, numbers)],
        "is_cuda": [tensor.is_cuda for tensor in (whole, one, numbers, whole.cpu())],
        "shapes": [list(whole.shape), list(one.shape)],
        "array": images.as_cpu().as_array().shape[0],
    }


def test_raw_outputs_of_a_gpu_graph_are_cuda_tensors(lab_child, jpegs):
    """By way of DLPack, whole or sample by sample; labels that stay on the CPU are not."""
    seen = lab_child(rehearsed, jpegs)
    assert seen["devices"] == ["cuda:0", "cuda:0", "cpu"]
    assert seen["is_cuda"] == [True, True, False, False]
    assert seen["shapes"] == [[4, 32, 32, 3], [32, 32, 3]]
    assert seen["array"] == 4


def prefetched():
    """A batch moved on a side stream, as NVIDIA's examples do it."""
    import torch

    from sandbox.guest.learner import rehearsal

    rehearsal.patch_torch(torch)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        images = torch.ones(2, 3).cuda(non_blocking=True)
    torch.cuda.current_stream().wait_stream(stream)
    images.record_stream(torch.cuda.current_stream())
    return images.is_cuda


def test_streams_can_be_recorded(lab_child):
    """`record_stream` takes the stand-in of a stream."""
    assert lab_child(prefetched)
