# SPDX-License-Identifier: Apache-2.0
"""Keras `fit` on a tf.data dataset: TRUTH [callback|none|KIND]...

KIND: legacy (tf_keras), several (steps_per_execution), endless (a dataset of unknown length),
mirrored (a distribution strategy), stop (an interrupt in the third epoch), twice, fail (caught).
"""
import contextlib
import json
import os
import sys

TRUTH, KINDS = sys.argv[1], sys.argv[2:]
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
if "legacy" in KINDS:
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
import tensorflow as tf

keras = tf.keras
x = np.random.RandomState(1).rand(40, 4).astype("float32")
y = (x.sum(1) > 2).astype("int64")
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
held_out = data.take(3)
if "endless" in KINDS:
    data = data.filter(lambda a, b: True)
truth = {"epochs": [], "losses": [], "history": {}}


class Truth(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        truth["epochs"].append(epoch)

    def on_train_batch_end(self, batch, logs=None):
        truth["losses"].append(float(logs["loss"]))
        if "stop" in KINDS and len(truth["losses"]) == 23:
            raise KeyboardInterrupt
        if "fail" in KINDS and len(truth["losses"]) == 13:
            raise ValueError("caught later")


keras.utils.set_random_seed(1)
scope = tf.distribute.MirroredStrategy(["/cpu:0"]).scope() if "mirrored" in KINDS else None
with scope or contextlib.nullcontext():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"],
                  steps_per_execution=4 if "several" in KINDS else 1)
callbacks = [Truth()]
if "callback" in KINDS:
    import epochmeter

    callbacks.append(epochmeter.KerasCallback())
try:
    history = model.fit(data, validation_data=held_out, epochs=4, initial_epoch=1, verbose=0, callbacks=callbacks)
    truth["history"] = history.history
except (KeyboardInterrupt, ValueError):
    pass
if "twice" in KINDS:
    truth["history"] = model.fit(data, epochs=2, verbose=0, callbacks=callbacks).history
truth["iterations"] = int(model.optimizer.iterations.numpy())
with open(TRUTH, "w") as file:
    json.dump(truth, file)
