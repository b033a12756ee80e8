# SPDX-License-Identifier: Apache-2.0
"""A plain PyTorch loop on one device: torch_plain.py auto|api

auto: not a line of epochmeter in the loop; api: epochs(), steps(), log() and phase().
"""
import sys

import torch
from synthetic import BATCH, DEVICE, EPOCHS, STEPS, Points, network, whole
from torch import nn
from torch.utils.data import DataLoader
from truth import Truth, torch_allocator, torch_gpu

API = sys.argv[1] == "api"
if API:
    import epochmeter


def evaluate(model, loader):
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x.to(DEVICE)).argmax(1) == y.to(DEVICE)).sum().item()
    return right / len(loader.dataset)


def main():
    torch.manual_seed(0)
    truth = Truth("torch")
    train = DataLoader(Points(BATCH * STEPS - 1), batch_size=BATCH, shuffle=True, collate_fn=whole)
    check = DataLoader(Points(BATCH * 3, seed=1), batch_size=BATCH, collate_fn=whole)
    model = network().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loss_of = nn.CrossEntropyLoss()
    for epoch in epochmeter.epochs(EPOCHS) if API else range(EPOCHS):
        steps, last = 0, None
        for x, y in epochmeter.steps(train) if API else train:
            optimizer.zero_grad()
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                loss = loss_of(model(x.to(DEVICE)), y.to(DEVICE))
            loss.backward()
            optimizer.step()
            steps += 1
            if API:
                last = loss.item()
                epochmeter.log(loss=last)
        if not API and DEVICE == "cpu":
            last = loss.item()
        allocator, scalars, scores = torch_allocator(), {} if last is None else {"loss": last}, {}
        if API:
            with epochmeter.phase("eval"):
                scores["accuracy"] = evaluate(model, check)
                epochmeter.log(scores)
        else:
            evaluate(model, check)
        truth.epoch(epoch, steps, scalars, scores, allocator)
    truth.write(gpu=torch_gpu(), samples=BATCH * STEPS - 1)


main()
