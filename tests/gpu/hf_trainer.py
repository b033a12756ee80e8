# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer with a model made from its configuration: hf_trainer.py auto|callback"""
import os
import sys
import tempfile

import torch
from synthetic import DEVICE, SMALL
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments
from truth import Truth, torch_allocator, torch_gpu

EPOCHS, SIZE = 2, 8 if SMALL else 64
STEPS = 3 if SMALL else 30


class Texts(torch.utils.data.Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(count)
        self.ids = torch.randint(0, 1000, (count, 128), generator=generator)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones(128, dtype=torch.long),
                "labels": int(self.ids[i][0]) % 2}


class Teller(TrainerCallback):
    def __init__(self):
        self.allocators = []

    def on_epoch_end(self, args, state, control, **more):
        self.allocators.append(torch_allocator())


def values(row):
    """A row of the log without what says where it belongs, and how fast it went."""
    return {k: v for k, v in row.items()
            if k not in ("epoch", "step") and not k.endswith(("_runtime", "_per_second"))}


def main():
    width = 32 if SMALL else 1024
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=1000, hidden_size=width, num_hidden_layers=1 if SMALL else 8, num_attention_heads=4,
        intermediate_size=width * 2, num_labels=2))
    teller = Teller()
    callbacks = [teller]
    if sys.argv[1] == "callback":
        import epochmeter

        callbacks.append(epochmeter.TransformersCallback())
    truth = Truth("transformers")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        arguments = TrainingArguments(
            output_dir=folder, num_train_epochs=EPOCHS, per_device_train_batch_size=SIZE,
            gradient_accumulation_steps=2, logging_steps=5 if not SMALL else 1, eval_strategy="epoch",
            save_strategy="epoch", save_total_limit=1, report_to=[], disable_tqdm=True, bf16=DEVICE == "cuda")
        trainer = Trainer(model=model, args=arguments, train_dataset=Texts(SIZE * 2 * STEPS - 3),
                          eval_dataset=Texts(SIZE * 4), callbacks=callbacks)
        trainer.train()
    history = trainer.state.log_history
    before = 0
    for epoch in range(EPOCHS):
        logs = [row for row in history if epoch < row["epoch"] <= epoch + 1]
        losses = [row for row in logs if "loss" in row]
        scores = [row for row in logs if "eval_loss" in row]
        steps = max(row["step"] for row in logs)
        truth.epoch(epoch, steps - before, values(losses[-1]), values(scores[-1]), teller.allocators[epoch])
        before = steps
    truth.write(gpu=torch_gpu(), history=history, global_step=trainer.state.global_step)


main()
