# SPDX-License-Identifier: Apache-2.0
"""A plain PyTorch loop that asks for more GPU memory than there is in its second epoch."""
import torch
from synthetic import BATCH, DEVICE, Points, network, whole
from torch import nn
from torch.utils.data import DataLoader

model = network().to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
train = DataLoader(Points(BATCH * 20), batch_size=BATCH, collate_fn=whole)
for epoch in range(2):
    for i, (x, y) in enumerate(train):
        loss = nn.functional.cross_entropy(model(x.to(DEVICE)), y.to(DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch == 1 and i == 10:
            hoard = [torch.empty(64 * 2**30, device=DEVICE, dtype=torch.uint8) for _ in range(99)]
