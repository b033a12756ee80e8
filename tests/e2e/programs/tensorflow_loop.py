# SPDX-License-Identifier: Apache-2.0
"""A custom TensorFlow loop: TRUTH [api|none] [eager|function|inside] [legacy]."""
import json
import os
import sys

TRUTH, MODE, KIND = sys.argv[1:4]
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
if "legacy" in sys.argv:
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
import tensorflow as tf

keras = tf.keras
x = np.random.RandomState(1).rand(20, 4).astype("float32")
y = (x.sum(1) > 2).astype("int64")
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
optimizer = keras.optimizers.Adam(0.01)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
truth = {"epochs": [], "losses": []}


def turn(a, b):
    with tf.GradientTape() as tape:
        loss = loss_of(b, model(a, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


if KIND != "eager":
    turn = tf.function(turn)


@tf.function
def whole_epoch():
    loss = 0.0
    for a, b in data:
        loss = turn(a, b)
    return loss


if MODE == "api":
    import epochmeter

    for epoch in epochmeter.epochs(3):
        truth["epochs"].append(epoch)
        for a, b in epochmeter.steps(data):
            truth["losses"].append(float(turn(a, b)))
            epochmeter.log(loss=truth["losses"][-1])
else:
    for epoch in range(3):
        truth["epochs"].append(epoch)
        if KIND == "inside":
            whole_epoch()
            continue
        for a, b in data:
            truth["losses"].append(float(turn(a, b)))
        for a, b in data:
            loss_of(b, model(a))
truth["iterations"] = int(optimizer.iterations.numpy())
with open(TRUTH, "w") as file:
    json.dump(truth, file)
