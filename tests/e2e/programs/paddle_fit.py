# SPDX-License-Identifier: Apache-2.0
"""`paddle.Model.fit` with a validation: TRUTH [callback|none]."""
import json
import sys

import numpy as np
import paddle
from paddle.io import TensorDataset

TRUTH, MODE = sys.argv[1], sys.argv[2]
x = np.random.RandomState(1).rand(40, 4).astype("float32")
y = (x.sum(1) > 2).astype("int64")[:, None]
data = TensorDataset([paddle.to_tensor(x), paddle.to_tensor(y)])
truth = {"epochs": [], "losses": [], "sizes": [], "val_losses": []}


class Truth(paddle.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        truth["epochs"].append(epoch)

    def on_train_batch_end(self, step, logs=None):
        truth["losses"].append(float(logs["loss"][0]))
        truth["sizes"].append(int(logs["batch_size"]))

    def on_eval_end(self, logs=None):
        truth["val_losses"].append(float(logs["loss"][0]))


paddle.seed(1)
net = paddle.nn.Linear(4, 2)
model = paddle.Model(net)
model.prepare(paddle.optimizer.Adam(0.01, parameters=net.parameters()), paddle.nn.CrossEntropyLoss())
callbacks = [Truth()]
if MODE == "callback":
    import epochmeter

    callbacks.append(epochmeter.PaddleCallback())
model.fit(data, data, batch_size=16, epochs=3, verbose=0, callbacks=callbacks)
with open(TRUTH, "w") as file:
    json.dump(truth, file)
