# SPDX-License-Identifier: Apache-2.0
"""Allocator and device readers, against stand-ins for the frameworks' modules on a GPU."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

import epochmeter
from client_support import FakeRecorder, run_python
from epochmeter import _frameworks, _recorder
from epochmeter._frameworks import cudart

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

    def is_initialized(self) -> bool:
        return self.initialized

    def current_device(self) -> int:
        assert self.initialized, "this would initialise CUDA"
        return 1

    def memory_stats_as_nested_dict(self, device: int) -> Dict[str, Any]:
        assert self.initialized and device == 1
        self.reads += 1
        return STATS

    def get_device_properties(self, device: int) -> Any:
        assert self.initialized and device == 1
        return types.SimpleNamespace(
            uuid="8f6a1c2e-0000-4000-8000-000000000001",
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


def test_reader_that_fails_is_not_called_again(
    cuda: Cuda, client: FakeRecorder, capsys: pytest.CaptureFixture[str]
) -> None:
    cuda.initialized = True
    cuda.memory_stats_as_nested_dict = None  # type: ignore[assignment,method-assign]
    for epoch in range(3):
        list(epochmeter.steps([1], epoch=epoch))
    assert len(client.events("step")) == 3 and client.events("memory") == []
    assert capsys.readouterr().err.count("reading memory of torch failed") == 1


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
