# SPDX-License-Identifier: Apache-2.0
"""Real Lightning: each metric is told once, with what it belongs to."""

from __future__ import annotations

import json
import os

import pytest

from client_support import ROOT, FakeRecorder, run_python

PYTHON = os.environ.get("EPOCHMETER_TORCH_PYTHON", str(ROOT / ".venv-torch" / "bin" / "python"))

if not os.access(PYTHON, os.X_OK):
    pytest.skip("no PyTorch: run tools/setup-torch", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FIT = """
import json, torch, lightning as L
from torch.utils.data import DataLoader, TensorDataset
truth = []
class M(L.LightningModule):
    def __init__(self):
        super().__init__(); self.m = torch.nn.Linear(4, 1)
    def loss(self, b): return ((self.m(b[0]) - b[1]) ** 2).mean()
    def training_step(self, b, i):
        loss = self.loss(b); self.log("train_loss", loss, on_step=True, on_epoch=True); return loss
    def validation_step(self, b, i): self.log("val_loss", self.loss(b))
    def on_train_epoch_start(self): self.note()
    def on_train_end(self): self.note()
    def note(self): truth.append({k: float(v) for k, v in self.trainer.callback_metrics.items()})
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.01)
data = TensorDataset(torch.randn(24, 4), torch.randn(24, 1))
L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False).fit(
    M(), DataLoader(data, batch_size=8), DataLoader(data, batch_size=24))
print(json.dumps(truth[1:]))
"""


def test_each_metric_is_told_once_and_where_it_belongs(recorder: FakeRecorder) -> None:
    done = run_python(FIT, recorder.path, bootstrap=True, python=PYTHON)
    assert done.returncode == 0, done.stderr
    truth = json.loads(done.stdout.splitlines()[-1])
    assert len(truth) == 3
    ends = recorder.events("epoch_end")
    assert [end["scalars"] for end in ends] == [
        {"train_loss": pytest.approx(said["train_loss_epoch"])} for said in truth
    ]
    assert {tuple(step["scalars"]) for step in recorder.events("step")} == {("train_loss",)}
    evals = recorder.events("phase_end")
    assert [e["scalars"] for e in evals] == [
        {"loss": pytest.approx(said["val_loss"])} for said in truth
    ]
