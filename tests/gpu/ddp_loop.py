# SPDX-License-Identifier: Apache-2.0
"""A two-rank DistributedDataParallel training with the plain-loop API, for machines with GPUs.

usage: torchrun --nproc-per-node 2 ddp_loop.py EPOCHS STEPS_PER_EPOCH
"""
import os
import sys

import epochmeter
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

EPOCHS, STEPS, BATCH, WIDTH = int(sys.argv[1]), int(sys.argv[2]), 4096, 8192


def batches(device):
    generator = torch.Generator(device=device).manual_seed(int(os.environ["RANK"]))
    for _ in range(STEPS):
        yield (torch.randn(BATCH, WIDTH, device=device, generator=generator),
               torch.randint(0, 10, (BATCH,), device=device, generator=generator))


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank)
    dist.init_process_group("nccl")
    layers = [nn.Linear(WIDTH, WIDTH), nn.ReLU()] * 1 + [nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10)]
    model = DistributedDataParallel(nn.Sequential(*layers).to(device), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loss_of = nn.CrossEntropyLoss()
    epochmeter.start()
    for epoch in range(EPOCHS):
        for x, y in epochmeter.steps(batches(device), epoch=epoch):
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
            epochmeter.log(loss=loss.item())
        with epochmeter.phase("eval"), torch.no_grad():
            for x, y in list(batches(device))[:5]:
                model(x)
            torch.cuda.synchronize()
        if local_rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} allocated {torch.cuda.memory_allocated()} "
                  f"peak {torch.cuda.max_memory_allocated()}", flush=True)
    dist.destroy_process_group()


main()
