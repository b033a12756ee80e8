# SPDX-License-Identifier: Apache-2.0
"""Data and a model that keep a GPU busy without a download, small enough for a CPU when SMALL=1."""
import os

import torch
from torch import nn
from torch.utils.data import Dataset

SMALL = os.environ.get("SMALL") == "1"
EPOCHS = int(os.environ.get("EPOCHS", "3"))
STEPS = int(os.environ.get("STEPS", "8" if SMALL else "150"))
BATCH = 16 if SMALL else 4096
WIDTH = 32 if SMALL else 8192
CLASSES = 10
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Points(Dataset):
    """Batches are cut from one tensor, so that loading costs little; use collate_fn=whole."""

    def __init__(self, count, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, 64, generator=generator)
        self.y = torch.randint(0, CLASSES, (count,), generator=generator)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

    def __getitems__(self, indexes):
        return self.x[indexes], self.y[indexes]


def whole(batch):
    return batch


def network():
    return nn.Sequential(nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(),
                         nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES))
