# SPDX-License-Identifier: Apache-2.0
"""Allocator and device readers, against stand-ins for the frameworks' modules on a GPU."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

import epochmeter
from client_support import FakeRecorder, run_python
from epochmeter import _frameworks, _recorder
from epochmeter._frameworks import cudart
from epochmeter._frameworks import torch as torch_reader

STATS: Dict[str, Any] = {
    "allocated_bytes": {"all": {"current": 100, "peak": 300, "allocated": 9, "freed": 9}},
    "reserved_bytes": {"all": {"current": 200, "peak": 400}},
    "num_alloc_retries": 2,
    "num_ooms": 1,
}


class Cuda:
    """torch.cuda as far as it may be touched: anything else raises AttributeError."""

    def __init__(self) -> None:
        self.initialized = False
        self.reads = 0
        self.backend = "native"
        # Device -> its counters.
        self.stats: Dict[int, Any] = {0: {}, 1: STATS}

    def is_initialized(self) -> bool:
        return self.initialized

    def current_device(self) -> int:
        assert self.initialized, "this would initialise CUDA"
        return 1

    def device_count(self) -> int:
        return len(self.stats)

    def get_allocator_backend(self) -> str:
        return self.backend

    def memory_stats_as_nested_dict(self, device: int) -> Any:
        assert self.initialized
        self.reads += device == 1
        return self.stats[device]

    def get_device_properties(self, device: int) -> Any:
        assert self.initialized
        return types.SimpleNamespace(
            uuid=f"8f6a1c2e-0000-4000-8000-00000000000{device}",
            pci_bus_id=27, pci_device_id=0, pci_domain_id=0,
        )  # fmt: skip


class Tensor:
    def __init__(self, kind: str) -> None:
        self.device = types.SimpleNamespace(type=kind)

    def __float__(self) -> float:
        assert self.device.type == "cpu", "this would wait for the GPU"
        return 1.5


Tensor.__module__ = "torch"


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cuda]:
    module = types.ModuleType("torch")
    made = Cuda()
    module.cuda = made  # type: ignore[attr-defined]
    module.__version__ = "2.11.0"  # type: ignore[attr-defined]
    monkeypatch.setattr(torch_reader, "_readings", 0)
    monkeypatch.setattr(torch_reader, "_in_use", [])
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(_frameworks, "_readers", {})
    yield made


def test_torch_is_left_alone_until_the_training_uses_cuda(cuda: Cuda, client: FakeRecorder) -> None:
    list(epochmeter.steps([1, 2], epoch=0))
    assert cuda.reads == 0 and client.events("memory") == []
    assert "gpus" not in client.events("train_begin")[0]


def test_torch_memory_comes_at_epoch_ends_and_by_time_with_peaks(
    cuda: Cuda, client: FakeRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda.initialized = True
    monkeypatch.setattr(_recorder, "MEMORY_PERIOD_NS", 50_000_000)
    for _ in epochmeter.steps(range(10), epoch=0):
        time.sleep(0.012)
    expected = {
        "framework": "torch", "device": "gpu:1", "allocated_bytes": 100, "reserved_bytes": 200,
        "max_allocated_bytes": 300, "max_reserved_bytes": 400, "alloc_retries": 2, "ooms": 1,
    }  # fmt: skip
    inline = [step["memory"] for step in client.events("step") if "memory" in step]
    assert 2 <= len(inline) <= 4 and inline == [expected] * len(inline)
    memory = client.events("memory")
    assert len(memory) == 1 and {k: memory[0][k] for k in expected} == expected


def test_gpu_in_use_is_told_as_soon_as_it_is_known(cuda: Cuda, client: FakeRecorder) -> None:
    for n in epochmeter.steps([1, 2], epoch=0):
        cuda.initialized = True
    expected = [
        {
            "index": 1,
            "uuid": "GPU-8f6a1c2e-0000-4000-8000-000000000001",
            "pci_bus_id": "0000:1b:00.0",
        }
    ]
    assert [hello.get("gpus") for hello in client.events("hello")] == [None, expected]


def test_short_phases_do_not_read_the_allocator_each_time(cuda: Cuda, client: FakeRecorder) -> None:
    cuda.initialized = True
    for _ in epochmeter.steps(range(20), epoch=0):
        with epochmeter.phase("forward"):
            pass
    with epochmeter.phase("eval"):
        time.sleep(0.06)
    # The first phase or step, the end of the epoch, the evaluation.
    assert cuda.reads == 3


def test_tensor_on_a_device_is_not_read_and_said_once(
    cuda: Cuda, client: FakeRecorder, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in epochmeter.steps([1, 2], epoch=0):
        epochmeter.log(loss=Tensor("cuda"), acc=Tensor("cpu"))
    assert [step["scalars"] for step in client.events("step")] == [{"acc": 1.5}] * 2
    assert capsys.readouterr().err.count(".item()") == 1


def test_reader_that_fails_rests_and_is_tried_again(
    cuda: Cuda,
    client: FakeRecorder,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr("epochmeter._frameworks.time.monotonic", lambda: now[0])
    cuda.initialized = True
    reading, cuda.memory_stats_as_nested_dict = cuda.memory_stats_as_nested_dict, None  # type: ignore
    list(epochmeter.steps([1], epoch=0))
    cuda.memory_stats_as_nested_dict = reading  # type: ignore[method-assign]
    list(epochmeter.steps([1], epoch=1))
    assert cuda.reads == 0 and client.events("memory") == []
    now[0] += 1.5
    list(epochmeter.steps([1], epoch=2))
    assert cuda.reads > 0 and len(client.events("memory")) == 1
    assert len(client.events("step")) == 3
    assert capsys.readouterr().err.count("reading memory of torch failed") == 1


def test_torch_memory_of_each_device_in_use_is_told(cuda: Cuda, client: FakeRecorder) -> None:
    cuda.initialized = True
    other = dict(STATS, reserved_bytes={"all": {"current": 77, "peak": 78}})
    cuda.stats = {0: other, 1: STATS, 2: dict(STATS, reserved_bytes={"all": {"current": 0}})}
    list(epochmeter.steps([1], epoch=0))
    devices = [event["device"] for event in client.events("memory")]
    assert sorted(set(devices)) == ["gpu:0", "gpu:1"] and devices[-2:] == ["gpu:1", "gpu:0"]
    assert [gpu["index"] for gpu in client.events("train_begin")[0]["gpus"]] == [1, 0]


def test_torch_counters_that_a_backend_does_not_keep_are_absent(
    cuda: Cuda, client: FakeRecorder
) -> None:
    cuda.initialized = True
    cuda.backend = "cudaMallocAsync"
    list(epochmeter.steps([1], epoch=0))
    memory = client.events("memory")[-1]
    assert memory["reserved_bytes"] > 0 and "ooms" not in memory and "alloc_retries" not in memory


def test_rank_of_torch_distributed_is_told_where_the_environment_has_none(
    cuda: Cuda, client: FakeRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = types.ModuleType("torch.distributed")
    distributed.is_available = distributed.is_initialized = lambda: True  # type: ignore
    distributed.get_rank, distributed.get_world_size = (lambda: 3), (lambda: 4)  # type: ignore
    monkeypatch.setitem(sys.modules, "torch.distributed", distributed)
    list(epochmeter.steps([1], epoch=0))
    assert {event.get("rank") for event in client.events("train_begin", "step")} == {3}
    hello = client.events("hello")[-1]
    assert (hello["rank"], hello["world"], hello["rank_source"]) == (3, 4, "torch")


class JaxDevice:
    platform = "gpu"
    id = 9
    local_hardware_id = 1

    def memory_stats(self) -> Dict[str, int]:
        return {
            "bytes_in_use": 0, "peak_bytes_in_use": 500, "pool_bytes": 900, "peak_pool_bytes": 0,
            "bytes_reserved": 0, "largest_alloc_size": 400,
        }  # fmt: skip


def test_jax_is_left_alone_until_a_backend_is_up(
    client: FakeRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_frameworks, "_readers", {})
    jax, bridge = types.ModuleType("jax"), types.ModuleType("jax._src.xla_bridge")
    asked: List[int] = []
    jax.local_devices = lambda: asked.append(1) or [JaxDevice()]  # type: ignore
    jax.process_count = lambda: 1  # type: ignore[attr-defined]
    bridge._backends = {}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    list(epochmeter.steps([1], epoch=0))
    assert asked == [] and client.events("memory") == []
    bridge._backends["cuda"] = object()  # type: ignore[attr-defined]
    list(epochmeter.steps([1], epoch=1))
    memory = client.events("memory")[-1]
    assert memory["device"] == "gpu:1" and memory["allocated_bytes"] == 0
    assert memory["max_allocated_bytes"] == 500 and memory["reserved_bytes"] == 900
    assert "max_reserved_bytes" not in memory


class CUDAPlace:
    def get_device_id(self) -> int:
        return 3


@pytest.fixture
def paddle_on_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    monkeypatch.setattr(_frameworks, "_readers", {})
    framework = types.ModuleType("paddle.base.framework")
    framework._global_expected_place_ = None  # type: ignore[attr-defined]
    cuda = types.ModuleType("paddle.device.cuda")
    for offset, name in enumerate(
        ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
    ):
        setattr(cuda, name, lambda device, offset=offset: 1000 * device + offset)
    monkeypatch.setitem(sys.modules, "paddle", types.ModuleType("paddle"))
    monkeypatch.setitem(sys.modules, "paddle.base.framework", framework)
    monkeypatch.setitem(sys.modules, "paddle.device.cuda", cuda)
    yield framework


def test_paddle_memory_is_read_of_the_gpu_it_decided_for(
    paddle_on_gpu: types.ModuleType, client: FakeRecorder
) -> None:
    list(epochmeter.steps([1], epoch=0))
    assert client.events("memory") == []
    paddle_on_gpu._global_expected_place_ = CUDAPlace()  # type: ignore[attr-defined]
    list(epochmeter.steps([1], epoch=1))
    memory = client.events("memory")[0]
    assert (memory["framework"], memory["device"]) == ("paddle", "gpu:3")
    assert [memory[n] for n in ("allocated_bytes", "reserved_bytes")] == [3000, 3001]
    assert [memory[n] for n in ("max_allocated_bytes", "max_reserved_bytes")] == [3002, 3003]
    assert client.events("hello")[-1]["gpus"][0]["index"] == 3


class XPUPlace(CUDAPlace):
    pass


class CustomPlace(CUDAPlace):
    def get_device_type(self) -> str:
        return "npu"


@pytest.mark.parametrize(
    "place, module, expected, argument",
    [
        (XPUPlace(), "paddle.device.xpu", "xpu:3", 3),
        (CustomPlace(), "paddle.device.custom_device", "npu:3", "npu:3"),
    ],
)
def test_paddle_memory_of_other_devices_is_read_where_paddle_counts_it(
    paddle_on_gpu: types.ModuleType,
    client: FakeRecorder,
    monkeypatch: pytest.MonkeyPatch,
    place: Any,
    module: str,
    expected: str,
    argument: Any,
) -> None:
    counters = types.ModuleType(module)
    asked: list = []
    counters.memory_allocated = lambda device: asked.append(device) or 7  # type: ignore
    monkeypatch.setitem(sys.modules, module, counters)
    paddle_on_gpu._global_expected_place_ = place  # type: ignore[attr-defined]
    list(epochmeter.steps([1], epoch=0))
    memory = client.events("memory")[0]
    assert (memory["device"], memory["allocated_bytes"]) == (expected, 7)
    # What this version of Paddle does not count is absent, and no GPU of ours is claimed.
    assert "reserved_bytes" not in memory and set(asked) == {argument}
    assert not any("gpus" in event for event in client.events("hello", "train_begin"))


class TensorflowContext:
    """TensorFlow's eager context as far as it may be touched."""

    def __init__(self) -> None:
        self._initialized = False
        cpu = types.SimpleNamespace(device_type="CPU", name="/device:CPU:0")
        gpu = types.SimpleNamespace(device_type="GPU", name="/device:GPU:1")
        self._logical_devices = [cpu, gpu]

    def get_memory_info(self, device: str) -> Dict[str, int]:
        assert self._initialized, "this would initialise the GPUs"
        assert device == "GPU:1"
        return {"current": 5, "peak": 9}


def test_tensorflow_is_left_alone_until_its_devices_are_up(
    client: FakeRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("tensorflow.python.eager.context")
    module._context = context = TensorflowContext()  # type: ignore[attr-defined]
    monkeypatch.setattr(_frameworks, "_readers", {})
    monkeypatch.setitem(sys.modules, "tensorflow", types.ModuleType("tensorflow"))
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", module)
    list(epochmeter.steps([1], epoch=0))
    assert client.events("memory") == []
    context._initialized = True
    list(epochmeter.steps([1], epoch=1))
    memory = client.events("memory")[0]
    assert (memory["framework"], memory["device"]) == ("tensorflow", "gpu:1")
    assert (memory["allocated_bytes"], memory["max_allocated_bytes"]) == (5, 9)
    # TensorFlow does not tell what it has taken from the device.
    assert "reserved_bytes" not in memory
    assert client.events("hello")[-1]["gpus"] == [{"index": 1}]


def test_no_cuda_runtime_in_the_process_means_no_address() -> None:
    assert cudart.pci_bus_id(0) is None


def test_address_comes_from_the_runtime_that_is_loaded(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = tmp_path / "runtime.c"
    source.write_text(
        "#include <stdio.h>\n"
        "int cudaDeviceGetPCIBusId(char* out, int size, int device) {\n"
        "  if (device > 1) return 101;\n"
        '  snprintf(out, (size_t)size, "0000:1%X:00.0", 10 + device);\n  return 0;\n}\n'
    )
    library = tmp_path / "libcudart.so.12"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    done = run_python(
        "import ctypes\n"
        "from epochmeter._frameworks import cudart\n"
        "print(cudart.pci_bus_id(0))\n"
        f"ctypes.CDLL({str(library)!r})\n"
        "print(cudart.pci_bus_id(1), cudart.pci_bus_id(2))\n"
    )
    assert done.stdout.split() == ["None", "0000:1b:00.0", "None"], done.stderr


def test_identity_comes_from_the_driver_that_is_loaded(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = tmp_path / "driver.c"
    source.write_text(
        "#include <stdio.h>\n#include <string.h>\n"
        "int cuDeviceGet(int* device, int index) { *device = index + 5; return index > 1; }\n"
        "int cuDeviceGetUuid_v2(char* out, int device) { memset(out, device, 16); return 0; }\n"
        "int cuDeviceGetPCIBusId(char* out, int size, int device) {\n"
        '  snprintf(out, (size_t)size, "0000:1%X:00.0", device);\n  return 0;\n}\n'
    )
    library = tmp_path / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    done = run_python(
        "import ctypes\n"
        "from epochmeter._frameworks import cudart\n"
        "print(cudart.identity(0))\n"
        f"ctypes.CDLL({str(library)!r})\n"
        "print(cudart.identity(1))\nprint(cudart.identity(2))\n"
    )
    uuid = "GPU-06060606-0606-0606-0606-060606060606"
    assert done.stdout.splitlines() == [
        "{}", str({"uuid": uuid, "pci_bus_id": "0000:16:00.0"}), "{}",
    ], done.stderr  # fmt: skip
