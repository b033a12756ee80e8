# SPDX-License-Identifier: Apache-2.0
"""A DistributedDataParallel training, for machines with GPUs; on CPUs with gloo.

usage: torchrun --nproc-per-node 2 ddp_loop.py EPOCHS STEPS_PER_EPOCH [api|auto]
api (or nothing): steps(), log() and phase(); auto: a DataLoader, and not a line of epochmeter.
"""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from truth import Truth, torch_allocator, torch_gpu

EPOCHS, STEPS = int(sys.argv[1]), int(sys.argv[2])
API = len(sys.argv) < 4 or sys.argv[3] == "api"
CUDA = torch.cuda.is_available()
BATCH, WIDTH = (4096, 8192) if CUDA else (16, 64)
if API:
    import epochmeter


def batches(device):
    generator = torch.Generator(device=device).manual_seed(int(os.environ["RANK"]))
    for _ in range(STEPS):
        yield (torch.randn(BATCH, WIDTH, device=device, generator=generator),
               torch.randint(0, 10, (BATCH,), device=device, generator=generator))


class Made(torch.utils.data.IterableDataset):
    """The same batches out of a DataLoader."""

    def __init__(self, device):
        self.device = device

    def __iter__(self):
        return batches(self.device)


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    if CUDA:
        torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank) if CUDA else torch.device("cpu")
    dist.init_process_group("nccl" if CUDA else "gloo")
    layers = [nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10)]
    model = DistributedDataParallel(nn.Sequential(*layers).to(device), device_ids=[local_rank] if CUDA else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loss_of = nn.CrossEntropyLoss()
    truth = Truth("torch")
    loader = DataLoader(Made(device), batch_size=None)
    if API:
        epochmeter.start()
    for epoch in range(EPOCHS):
        steps, last = 0, None
        for x, y in epochmeter.steps(batches(device), epoch=epoch) if API else loader:
            optimizer.zero_grad()
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
            steps += 1
            if API:
                last = loss.item()
                epochmeter.log(loss=last)
        truth.epoch(epoch, steps, {} if last is None else {"loss": last}, allocator=torch_allocator())
        if API:
            with epochmeter.phase("eval"), torch.no_grad():
                for x, y in list(batches(device))[:5]:
                    model(x)
                if CUDA:
                    torch.cuda.synchronize()
        if local_rank == 0:
            allocated = (torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()) if CUDA else ("-", "-")
            print(f"epoch {epoch} loss {loss.item():.4f} allocated {allocated[0]} peak {allocated[1]}", flush=True)
    truth.write(gpu=torch_gpu())
    dist.destroy_process_group()


main()
