"""Lets code written for a GPU run unchanged on a host without one: CUDA requests become CPU ones that remember it.

Installed in the learner's pod only, in a rehearsal only. A tensor that the learner's code moved to CUDA stays on the
CPU and carries a mark, so that `is_cuda` and `device` answer as they would on a GPU. What cannot be answered that way
raises, and the discovery says that a GPU is needed.
"""

import contextlib
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, Self

MARK = "_grader_on_cuda"
DEVICE_NAME = "rehearsal on a CPU (no GPU)"


class _Event:
    """`torch.cuda.Event` on the host's clock."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._at = 0.0

    def record(self, *_: Any) -> None:
        self._at = time.perf_counter()

    def elapsed_time(self, end: "_Event") -> float:
        return (end._at - self._at) * 1000.0

    def synchronize(self) -> None: ...
    def wait(self, *_: Any) -> None: ...

    def query(self) -> bool:
        return True


class _Stream:
    """`torch.cuda.Stream` that runs everything at once."""

    cuda_stream = 0
    device_index = 0

    def __init__(self, *_: Any, **__: Any) -> None: ...
    def synchronize(self) -> None: ...
    def wait_stream(self, *_: Any) -> None: ...
    def wait_event(self, *_: Any) -> None: ...
    def record_event(self, event: Any = None) -> Any:
        event = event or _Event()
        event.record()
        return event

    def query(self) -> bool:
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def _always(value: Any = None) -> Callable[..., Any]:
    """A function of its own for each name: torch's compiler refuses one object under two names."""

    def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer


def patch_torch(torch: Any) -> None:
    """Patches `torch` right after its import."""
    _patch_cuda_module(torch)
    mode_class = _make_mode(torch)
    mode_class().__enter__()

    # A mode belongs to one thread; learners' prefetch threads move tensors too.
    original_run = threading.Thread.run

    def run(thread: threading.Thread) -> None:
        with mode_class():
            original_run(thread)

    threading.Thread.run = run  # type: ignore[method-assign, assignment]


def patch_dali_plugin(module: Any) -> None:
    """Marks what a DALI iterator delivers from GPU outputs, as it would lie on the GPU."""
    base = module.DALIGenericIterator
    original = base.__next__

    def next_batch(iterator: Any) -> Any:
        batch = original(iterator)
        for pipe, outputs in zip(iterator._pipes, batch, strict=False):
            placed = getattr(pipe, "_graph_outputs", None) or []
            for key, node in zip(iterator.output_map, placed, strict=False):
                tensor = outputs.get(key) if isinstance(outputs, dict) else None
                if tensor is not None and getattr(node, "device", "") == "gpu":
                    with contextlib.suppress(AttributeError):
                        setattr(tensor, MARK, True)
        return batch

    base.__next__ = next_batch


_from_gpu: "weakref.WeakSet[Any]" = weakref.WeakSet()
"""DALI's lists and tensors that came out of GPU outputs."""


def patch_dali_pipeline(pipeline_class: Any) -> None:
    """Remembers what `run()` delivers from GPU outputs, so that it lies on CUDA once it is a torch tensor."""
    from nvidia.dali.tensors import TensorListCPU

    def keeping(original: Callable[..., Any]) -> Callable[..., Any]:
        def delivered(pipe: Any, *args: Any, **kwargs: Any) -> Any:
            outputs = original(pipe, *args, **kwargs)
            for output, node in zip(outputs, pipe._graph_outputs or (), strict=False):
                if getattr(node, "device", "") == "gpu":
                    _from_gpu.add(output)
            return outputs

        return delivered

    def passing_on(original: Callable[..., Any]) -> Callable[..., Any]:
        def taken(tensors: Any, *args: Any) -> Any:
            part = original(tensors, *args)
            if tensors in _from_gpu:
                _from_gpu.add(part)
            return part

        return taken

    for name in ("share_outputs", "_outputs"):
        setattr(pipeline_class, name, keeping(getattr(pipeline_class, name)))
    for name in ("as_tensor", "__getitem__"):
        setattr(TensorListCPU, name, passing_on(getattr(TensorListCPU, name)))


def _quiet_context() -> Callable[..., Any]:
    @contextlib.contextmanager
    def context(*_: Any, **__: Any) -> Iterator[None]:
        yield

    return context


def _patch_cuda_module(torch: Any) -> None:
    cuda = torch.cuda
    properties = SimpleNamespace(
        name=DEVICE_NAME, total_memory=16 << 30, multi_processor_count=1, major=8, minor=0, uuid="rehearsal"
    )
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": DEVICE_NAME,
        "get_device_properties": properties,
        "get_device_capability": (8, 0),
        "mem_get_info": (16 << 30, 16 << 30),
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "memory_reserved": 0,
        "max_memory_reserved": 0,
        "memory_summary": "",
        "utilization": 0,
        "is_bf16_supported": True,
        "is_current_stream_capturing": False,
        "current_stream": _Stream(),
        "default_stream": _Stream(),
    }
    for name, value in answers.items():
        setattr(cuda, name, _always(value))
    for name in (
        "synchronize",
        "set_device",
        "set_stream",
        "empty_cache",
        "ipc_collect",
        "init",
        "_lazy_init",
        "reset_peak_memory_stats",
        "reset_max_memory_allocated",
        "manual_seed",
        "manual_seed_all",
        "set_per_process_memory_fraction",
    ):
        setattr(cuda, name, _always())
    # DataLoader asks this one before it starts a thread that pins memory, which needs a driver.
    torch.accelerator.is_available = _always(False)
    warnings.filterwarnings("ignore", message=".*'pin_memory' argument is set as true.*")
    cuda.Event = _Event
    cuda.Stream = _Stream
    torch.Tensor.record_stream = _always()  # torch's own looks at the stream's type before a mode is asked
    cuda.stream = _quiet_context()
    cuda.device = _quiet_context()
    for name in ("range_push", "range_pop", "mark"):
        setattr(cuda.nvtx, name, _always())
    original_default = torch.set_default_device
    torch.set_default_device = lambda device: original_default(_cpu_if_cuda(torch, device))
    original_generator = torch.Generator

    class Generator(original_generator):  # type: ignore[misc, valid-type]
        """`torch.Generator` whose CUDA device is the CPU; a class, since torch's own annotations use it as one."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return original_generator.__new__(cls, device=_cpu_if_cuda(torch, device))

    torch.Generator = Generator
    original_load = torch.load

    def load(*args: Any, **kwargs: Any) -> Any:
        if _is_cuda(torch, kwargs.get("map_location")):
            kwargs["map_location"] = "cpu"
        return original_load(*args, **kwargs)

    torch.load = load
    original_dlpack = torch.from_dlpack

    def from_dlpack(source: Any, *args: Any, **kwargs: Any) -> Any:
        result = original_dlpack(source, *args, **kwargs)
        if type(source).__name__ == "TensorCPU" and source in _from_gpu:
            result.__dict__[MARK] = True
        return result

    torch.from_dlpack = torch.utils.dlpack.from_dlpack = from_dlpack
    _patch_modules(torch)


def _patch_modules(torch: Any) -> None:
    """Parameters are moved by swapping their data, which loses the mark: set or clear it afterwards."""
    module_class = torch.nn.Module
    original_to, original_cpu = module_class.to, module_class.cpu

    def all_tensors(module: Any) -> Iterator[Any]:
        yield from module.parameters()
        yield from module.buffers()

    def moved(module: Any, *, to_cuda: bool) -> Any:
        for item in all_tensors(module):
            if to_cuda:
                item.__dict__[MARK] = True
            else:
                item.__dict__.pop(MARK, None)
        return module

    def to(module: Any, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device", args[0] if args else None)
        if isinstance(device, int) and not isinstance(device, bool):
            device = "cuda"
        moves = isinstance(device, (str, torch.device))
        if moves and "device" in kwargs:
            kwargs["device"] = _cpu_if_cuda(torch, device)
        elif moves:
            args = (_cpu_if_cuda(torch, device), *args[1:])
        original_to(module, *args, **kwargs)
        return moved(module, to_cuda=_is_cuda(torch, device)) if moves else module

    def cuda(module: Any, *_: Any) -> Any:
        return moved(module, to_cuda=True)

    def cpu(module: Any) -> Any:
        return moved(original_cpu(module), to_cuda=False)

    module_class.to, module_class.cuda, module_class.cpu = to, cuda, cpu


def _is_cuda(torch: Any, device: Any) -> bool:
    if isinstance(device, torch.device):
        return bool(device.type == "cuda")
    return isinstance(device, str) and device.split(":")[0] == "cuda"


def _cpu_if_cuda(torch: Any, device: Any) -> Any:
    return "cpu" if _is_cuda(torch, device) else device


def _make_mode(torch: Any) -> Any:
    """The class of the mode that sees every torch call of a thread; built once torch is there."""
    tensor = torch.Tensor
    cuda_device = torch.device("cuda", 0)
    no_longer_tensors = {tensor.cpu, tensor.numpy, tensor.tolist, tensor.item, torch.as_tensor, torch.tensor}

    def marked(value: Any) -> bool:
        return isinstance(value, tensor) and MARK in value.__dict__

    def mark(value: Any) -> Any:
        if isinstance(value, tensor):
            value.__dict__[MARK] = True
        elif isinstance(value, (tuple, list)):
            for item in value:
                mark(item)
        return value

    # What is answered without asking torch: (function, self) -> answer.
    answers: dict[Any, Callable[[Any], Any]] = {
        tensor.is_cuda.__get__: marked,
        tensor.get_device: lambda value: 0 if marked(value) else -1,
        tensor.cuda: lambda value: mark(value.view_as(value)),
        tensor.pin_memory: lambda value: value,
        tensor.is_pinned: lambda _: False,
        tensor.cpu: lambda value: value.view_as(value),
    }
    get_device = tensor.device.__get__

    def rewrite_to(args: Any, *, to_cuda: bool, from_cuda: bool) -> tuple[Any, bool, bool]:
        """`Tensor.to` takes a device, a dtype or another tensor by position."""
        rest = list(args[1:])
        for index, value in enumerate(rest):
            if (type(value) is int and index == 0) or _is_cuda(torch, value):
                rest[index], to_cuda = "cpu", True
            elif isinstance(value, (str, torch.device)):
                from_cuda = False
            elif isinstance(value, tensor):
                to_cuda = to_cuda or marked(value)
        return (args[0], *rest), to_cuda, from_cuda

    class RehearsalMode(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        """Answers for CUDA, passes the rest on."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            del types
            if func in answers:
                return answers[func](args[0])
            if func == get_device:
                return cuda_device if marked(args[0]) else func(*args)
            kwargs = dict(kwargs or {})
            kwargs.pop("pin_memory", None)
            from_cuda = func not in no_longer_tensors and any(marked(value) for value in args)
            to_cuda = False
            if kwargs.get("device") is not None:
                to_cuda = type(kwargs["device"]) is int or _is_cuda(torch, kwargs["device"])
                from_cuda = from_cuda and func is not tensor.to
                if to_cuda:
                    kwargs["device"] = "cpu"
            if func is tensor.to:
                args, to_cuda, from_cuda = rewrite_to(args, to_cuda=to_cuda, from_cuda=from_cuda)
            result = func(*args, **kwargs)
            if func is tensor.to and result is args[0] and marked(result) != (to_cuda or from_cuda):
                result = result.view_as(result)  # the same numbers on the other side: a tensor of its own
            return mark(result) if to_cuda or from_cuda else result

    return RehearsalMode
