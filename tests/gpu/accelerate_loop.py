# SPDX-License-Identifier: Apache-2.0
"""A loop with Accelerate, no line of epochmeter in it: gradients of two batches make a step."""
import torch
from accelerate import Accelerator
from synthetic import BATCH, DEVICE, EPOCHS, STEPS, Points, network, whole
from torch import nn
from torch.utils.data import DataLoader
from truth import Truth, torch_allocator, torch_gpu


def main():
    torch.manual_seed(0)
    truth = Truth("torch")
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    model = network()
    model, optimizer, train, check = accelerator.prepare(
        model, torch.optim.AdamW(model.parameters(), lr=1e-4),
        DataLoader(Points(BATCH * (STEPS // 2 * 2 - 1)), batch_size=BATCH, shuffle=True, collate_fn=whole),
        DataLoader(Points(BATCH * 3, seed=1), batch_size=BATCH, collate_fn=whole))
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        steps = 0
        for x, y in train:
            with accelerator.accumulate(model):
                loss = loss_of(model(x), y)
                accelerator.backward(loss)
                optimizer.step()
                # A plain loop's epoch ends with its last step, the gradients still there.
                allocator = torch_allocator()
                optimizer.zero_grad()
            steps += accelerator.sync_gradients
        with torch.no_grad():
            for x, y in check:
                model(x)
        truth.epoch(epoch, int(steps), allocator=allocator)
    truth.write(gpu=torch_gpu() if DEVICE == "cuda" else None, samples=BATCH * (STEPS // 2 * 2 - 1))


main()
