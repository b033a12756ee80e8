# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer.fit: lightning_fit.py auto|callback [lightning.pytorch|pytorch_lightning]"""
import importlib
import os
import sys
import tempfile

import torch
from synthetic import BATCH, DEVICE, EPOCHS, STEPS, Points, network, whole
from torch.utils.data import DataLoader
from truth import Truth, torch_allocator, torch_gpu

pl = importlib.import_module(sys.argv[2] if len(sys.argv) > 2 else "lightning.pytorch")
CSVLogger = importlib.import_module(pl.__name__ + ".loggers").CSVLogger
truth = Truth("lightning")


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = network()

    def training_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


class Teller(pl.Callback):
    """Notes what Lightning itself reports once an epoch is behind it."""

    def __init__(self):
        self.steps_before = 0
        self.allocator = None

    def on_train_epoch_end(self, trainer, module):
        self.allocator = torch_allocator()

    def note(self, trainer, epoch):
        # One that is logged as both comes as `x`, `x_step` and `x_epoch`, and is told as `x`.
        values = {k: float(v) for k, v in trainer.callback_metrics.items()
                  if not k.endswith(("_step", "_epoch"))}
        scores = {k: v for k, v in values.items() if k.startswith("val")}
        truth.epoch(epoch, trainer.global_step - self.steps_before, values, scores, self.allocator)
        self.steps_before = trainer.global_step

    def on_train_epoch_start(self, trainer, module):
        if trainer.current_epoch > 0:
            self.note(trainer, trainer.current_epoch - 1)

    def on_train_end(self, trainer, module):
        self.note(trainer, EPOCHS - 1)


def main():
    torch.manual_seed(0)
    callbacks = [Teller()]
    if sys.argv[1] == "callback":
        import epochmeter

        callbacks.append(epochmeter.LightningCallback())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        trainer = pl.Trainer(max_epochs=EPOCHS, accelerator="gpu" if DEVICE == "cuda" else "cpu", devices=1,
                             precision="bf16-mixed", accumulate_grad_batches=2, callbacks=callbacks,
                             logger=CSVLogger(folder), log_every_n_steps=10, enable_progress_bar=False,
                             enable_model_summary=False)
        trainer.fit(Module(), DataLoader(Points(BATCH * (STEPS // 2 * 2 - 1)), batch_size=BATCH, collate_fn=whole),
                    DataLoader(Points(BATCH * 3, seed=1), batch_size=BATCH, collate_fn=whole))
    truth.write(gpu=torch_gpu(), samples=BATCH * (STEPS // 2 * 2 - 1))


main()
