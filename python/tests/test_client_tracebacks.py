# SPDX-License-Identifier: Apache-2.0
"""What a training prints when it fails is what it prints without us, to the last byte."""

from __future__ import annotations

import inspect
import os
import re
import sys
import traceback
import types
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

import pytest

from client_support import ROOT, FakeRecorder, run_python
from epochmeter._frameworks import wrapping

# Before 3.11 a bare `raise` puts the frame back that was taken out.
TAKEN_OUT = sys.version_info >= (3, 11)

TORCH = os.environ.get("EPOCHMETER_TORCH_PYTHON", str(ROOT / ".venv-torch" / "bin" / "python"))
TENSORFLOW = str(ROOT / ".venv-tf" / "bin" / "python")


class Owner:
    def work(self, x: int, *, y: float = 1.0) -> int:
        """Works."""
        return 1 // x


def passing_on(original: Callable[..., Any]) -> Callable[..., Any]:
    def work(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            wrapping.unseen(error)
            raise

    return work


@pytest.mark.skipif(not TAKEN_OUT, reason="a bare raise of this Python keeps the frame")
@pytest.mark.parametrize("make", [passing_on, wrapping.telling_failure, wrapping.timing_pass])
def test_wrapper_leaves_no_frame_in_a_traceback(make: Callable[[Any], Any]) -> None:
    def work(self: Any) -> Any:
        raise KeyError("theirs")

    owner = type("Owner", (), {"work": work})
    wrapping.wrap(owner, "work", make)
    with pytest.raises(KeyError) as caught:
        owner().work()
    names = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == [__file__, __file__]


def test_wrapped_function_is_asked_for_its_arguments_as_ever() -> None:
    owner = type("Own", (), dict(vars(Owner)))
    before = (inspect.getfullargspec(owner.work), inspect.signature(owner.work))
    wrapping.wrap(owner, "work", passing_on)
    assert hasattr(owner.work, wrapping.MARK)
    assert (inspect.getfullargspec(owner.work), inspect.signature(owner.work)) == before
    assert str(inspect.signature(owner().work)) == "(x: 'int', *, y: 'float' = 1.0) -> 'int'"
    assert inspect.getsource(owner.work) == inspect.getsource(Owner.work)


def test_function_without_a_signature_is_wrapped_all_the_same() -> None:
    owner = types.SimpleNamespace(work=dict.pop)
    wrapping.wrap(owner, "work", passing_on)
    assert owner.work({1: 2}, 1) == 2


TORCH_HEAD = """
import logging, os, tempfile, warnings
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
os.chdir(FOLDER)
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset
torch.manual_seed(0)
data = TensorDataset(torch.ones(8, 4), torch.ones(8, 1))
def boom(*_, **__):
    print("so far"); raise ValueError("boom")
"""
LIGHTNING = """
import lightning as L
class M(L.LightningModule):
    def __init__(self):
        super().__init__(); self.m = torch.nn.Linear(4, 1)
    def training_step(self, b, i):
        loss = ((self.m(b[0]) - b[1]) ** 2).mean(); self.log("l", loss); return loss
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
class C(L.Callback):
    HOOK = boom
L.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, callbacks=[C()]).fit(M(), DataLoader(data))
"""
HUGGING_FACE = """
import transformers
class M(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.m = torch.nn.Linear(4, 1)
    def forward(self, x=None, labels=None):
        return {"loss": ((self.m(x) - labels) ** 2).mean()}
rows = [{"x": a, "labels": b} for a, b in data]
class C(transformers.TrainerCallback):
    HOOK = boom
args = transformers.TrainingArguments("out", num_train_epochs=2, use_cpu=True, report_to=[],
    save_strategy="no", disable_tqdm=True, eval_strategy="epoch")
transformers.Trainer(M(), args, train_dataset=rows, eval_dataset=rows, callbacks=[C()]).train()
"""
KERAS = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras, numpy as np
def boom(*_, **__):
    print("so far"); raise ValueError("boom")
class C(keras.callbacks.Callback):
    HOOK = boom
m = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
m.compile("sgd", "mse")
m.fit(np.ones((8, 4)), np.ones((8, 1)), epochs=2, verbose=0, callbacks=[C()])
"""
PADDLE = """
import paddle, numpy as np
class D(paddle.io.Dataset):
    def __len__(self): return 8
    def __getitem__(self, i):
        return np.ones(4, "float32"), np.ones(1, "float32")
def boom(*_, **__):
    print("so far"); raise ValueError("boom")
class C(paddle.callbacks.Callback):
    HOOK = boom
net = paddle.nn.Linear(4, 1)
model = paddle.Model(net)
model.prepare(paddle.optimizer.Adam(parameters=net.parameters()), paddle.nn.MSELoss())
model.fit(D(), batch_size=2, epochs=2, verbose=0, callbacks=[C()])
"""

CASES: Dict[str, Tuple[str, str]] = {
    "torch_backward_twice": (TORCH, TORCH_HEAD + "l = torch.ones(1, requires_grad=True).exp().sum()\n"
                             "l.backward(); print('once'); l.backward()\n"),
    "torch_dataset": (TORCH, TORCH_HEAD + "class D(Dataset):\n    __len__ = lambda self: 4\n"
                      "    __getitem__ = boom\nfor b in DataLoader(D()): pass\n"),
    "torch_dataset_in_a_worker": (TORCH, TORCH_HEAD + "class D(Dataset):\n    __len__ = lambda self: 4\n"
                                  "    __getitem__ = boom\nfor b in DataLoader(D(), num_workers=1): pass\n"),
    "lightning_batch_end": (TORCH, TORCH_HEAD + LIGHTNING.replace("HOOK", "on_train_batch_end")),
    "lightning_epoch_end": (TORCH, TORCH_HEAD + LIGHTNING.replace("HOOK", "on_train_epoch_end")),
    "transformers_step_end": (TORCH, TORCH_HEAD + HUGGING_FACE.replace("HOOK", "on_step_end")),
    "transformers_evaluate": (TORCH, TORCH_HEAD + HUGGING_FACE.replace("HOOK", "on_prediction_step")),
    "keras_batch_end": (TENSORFLOW, KERAS.replace("HOOK", "on_train_batch_end")),
    "keras_epoch_end": (TENSORFLOW, KERAS.replace("HOOK", "on_epoch_end")),
    "paddle_batch_end": (sys.executable, PADDLE.replace("HOOK", "on_train_batch_end")),
}  # fmt: skip


def said(done: Any) -> Tuple[int, str, str]:
    """Exit code and output, without what changes from run to run."""
    return done.returncode, done.stdout, re.sub(r"0x[0-9a-f]+|\d{4,}", "N", done.stderr)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CASES)
def test_failing_training_prints_what_it_prints_without_us(
    recorder: FakeRecorder, tmp_path: Path, name: str
) -> None:
    python, script = CASES[name]
    if not os.access(python, os.X_OK):
        pytest.skip(f"no {python}")
    script = script.replace("FOLDER", repr(str(tmp_path)))
    plain = run_python(script, python=python, holder=False)
    if "No module named" in plain.stderr:
        pytest.skip(plain.stderr.splitlines()[-1])
    assert plain.returncode == 1 and "Traceback" in plain.stderr
    done = run_python(script, recorder.path, bootstrap=True, python=python)
    assert said(done) == said(plain)
