# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network on scikit-learn's handwritten digits with PaddlePaddle.

The 1797 images come inside scikit-learn, so nothing is downloaded. Nothing here knows about
epochmeter: it is the plain script of a user, recorded from outside.
"""

import argparse

import numpy as np
import paddle
from paddle import nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class Digits(paddle.io.Dataset):
    def __init__(self, images, labels):
        self.images = images
        self.labels = labels

    def __getitem__(self, index):
        return self.images[index], self.labels[index]

    def __len__(self):
        return len(self.images)


def load():
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, np.newaxis]
    labels = digits.target.astype(np.int64)[:, np.newaxis]
    parts = train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)
    train_images, test_images, train_labels, test_labels = parts
    return Digits(train_images, train_labels), Digits(test_images, test_labels)


def network():
    return nn.Sequential(
        nn.Conv2D(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2D(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2D(2),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 128),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(128, 10),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()

    paddle.seed(0)
    np.random.seed(0)
    train, test = load()
    model = paddle.Model(network())
    model.prepare(
        paddle.optimizer.Adam(learning_rate=1e-3, parameters=model.parameters()),
        nn.CrossEntropyLoss(),
        paddle.metric.Accuracy(),
    )
    model.fit(train, test, epochs=args.epochs, batch_size=args.batch_size, verbose=2, log_freq=20)
    result = model.evaluate(test, batch_size=args.batch_size, verbose=0)
    print(f"test accuracy {result['acc']:.4f}")


if __name__ == "__main__":
    main()
