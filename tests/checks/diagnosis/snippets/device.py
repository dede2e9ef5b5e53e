"""GPUs and drivers that are not there, and code that cannot use them."""

from tests.checks.diagnosis.snippets import built

SNIPPETS = {
    "dali_no_driver": "good(device_id=0).build()",
    "dali_needs_gpu": built('images = fn.decoders.image(jpegs, device="mixed")', "return images, labels"),
    "torch_no_driver": "torch.zeros(1).cuda()",
    "torch_no_driver#2": "torch.cuda.synchronize()",
    "device_string": 'torch.zeros(1).to("gpu")',
    "device_string#2": 'torch.device("cuda:first")',
    "device_id_type": 'good(device_id="cuda:0").build()',
    "cuda_of_cpu": 'torch.Tensor([1.0]).cuda(device="cpu")',
    "own_gpu_assertion": 'assert torch.cuda.is_available(), "this lab needs a GPU"',
    "nvidia_smi": """
import subprocess
subprocess.run(["nvidia-smi"], check=True)
""",
    "pipeline_parameter_type": "good(device_id=[0]).build()",
    "cuda_to_numpy": 'torch.zeros(1, device="meta").numpy()',
    "dali_needs_gpu#2": built('return fn.decoders.image(jpegs, device="cpu"), labels.gpu()'),
}
