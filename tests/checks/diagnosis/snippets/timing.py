"""Mistakes with clocks and rates."""

SNIPPETS = {
    "clock_not_called": """
start = time.time
elapsed = time.time() - start
""",
    "clock_not_called#2": """
start = time.perf_counter
elapsed = time.perf_counter - start
""",
    "module_called": "start = time()",
    "rate_division_by_zero": """
images, elapsed = 100, 0.0
dali_throughput = images / elapsed
""",
    "rate_division_by_zero#2": """
count = 0
seconds_per_image = 3.0 / count
""",
    "function_without_return": """
def measure(loader):
    for batch in loader:
        pass
pytorch_throughput = measure([])
speedup = 900.0 / pytorch_throughput
""",
    "function_without_return#2": """
def measure(loader):
    pass
if measure([]) > measure([]):
    pass
""",
    "own_ratio_assertion": """
pytorch_throughput, dali_throughput = 900.0, 800.0
assert dali_throughput > pytorch_throughput * 1.1
""",
    "own_ratio_assertion#2": """
speedup = 0.9
assert speedup >= 1.1, f"only {speedup}"
""",
    "generator_length": """
loader = iter(DataLoader([1, 2, 3]))
images = len(x for x in loader)
""",
    "float_as_count": """
for i in range(100 / 4):
    pass
""",
    "tensor_formatted": 'print(f"{torch.zeros(2):.1f}")',
    "own_cuda_assertion": """
first_batch = torch.zeros(4, 3, 8, 8)
assert first_batch.is_cuda
""",
    "own_cuda_assertion#2": """
first_batch = torch.zeros(4, 3)
assert first_batch.dim() == 4, first_batch.shape
""",
    "function_without_return#3": """
def measure(loader):
    print(100.0)
print(f"PyTorch throughput {measure([]):.1f}")
""",
    "event_not_recorded": """
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
elapsed = start.elapsed_time(end)
""",
    "rate_is_text": """
pytorch_throughput = f"{900.0:.1f} images/s"
speedup = 1800.0 / pytorch_throughput
""",
    "rate_is_text#2": """
pytorch_throughput = "900"
faster = 1800.0 > pytorch_throughput
""",
}
