# SPDX-License-Identifier: Apache-2.0
"""A plain Paddle loop with gradient steps, a validation and a printed log: TRUTH [api|none] [WORKERS]."""
import json
import sys

import numpy as np
import paddle
from paddle.io import DataLoader, Dataset

TRUTH, MODE, WORKERS = sys.argv[1], sys.argv[2], int(sys.argv[3])


class Points(Dataset):
    def __init__(self, count):
        self.x = np.random.RandomState(1).rand(count, 4).astype("float32")
        self.y = (self.x.sum(1) > 2).astype("int64")

    def __getitem__(self, i):
        return self.x[i], self.y[i]

    def __len__(self):
        return len(self.y)


paddle.seed(1)
net = paddle.nn.Linear(4, 2)
optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())
data = DataLoader(Points(40), batch_size=16, num_workers=WORKERS)
held_out = DataLoader(Points(24), batch_size=8)
loss_of = paddle.nn.functional.cross_entropy
truth = {"epochs": [], "losses": [], "sizes": []}


def turn(x, y):
    loss = loss_of(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    truth["losses"].append(float(loss))
    truth["sizes"].append(int(x.shape[0]))
    return float(loss)


if MODE == "api":
    import epochmeter

    for epoch in epochmeter.epochs(3):
        truth["epochs"].append(epoch)
        for x, y in epochmeter.steps(data):
            epochmeter.log(loss=turn(x, y))
else:
    for epoch in range(3):
        truth["epochs"].append(epoch)
        for x, y in data:
            turn(x, y)
        with paddle.no_grad():
            for x, y in held_out:
                loss_of(net(x), y)
with open(TRUTH, "w") as file:
    json.dump(truth, file)
