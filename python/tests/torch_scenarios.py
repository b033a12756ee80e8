# SPDX-License-Identifier: Apache-2.0
"""Plain PyTorch trainings with not a line of epochmeter in them, each in a fork of its own.

Run by test_client_torch.py as the recorder would start it. Prints a JSON object: name of the
training -> its pid, and what it counted itself.
"""

import json
import os
import sys
import traceback

import torch
import torch._dynamo  # slow: once, before the forks
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

torch.set_num_threads(1)
x, y = torch.randn(64, 4), torch.randint(0, 2, (64,))
data = TensorDataset(x, y)
SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def loader(count=64, size=8, **more):
    return DataLoader(TensorDataset(x[:count], y[:count]), batch_size=size, **more)


def made(kind=torch.optim.SGD, **more):
    model = nn.Linear(4, 2)
    return model, kind(model.parameters(), lr=0.1, **more)


def loss_of(model, batch):
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def turn(model, optimizer, batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    return loss.item()


@scenario
def plain():
    model, optimizer = made()
    losses = [[turn(model, optimizer, batch) for batch in loader()] for _ in range(3)]
    return {"steps": [8, 8, 8], "losses": losses, "samples": [64] * 3}


@scenario
def validation_between_and_inside():
    model, optimizer = made()
    train, check = loader(), loader(16)
    for _ in range(2):
        for i, batch in enumerate(train):
            turn(model, optimizer, batch)
            if i == 3:
                with torch.no_grad():
                    for other in check:
                        loss_of(model, other)
        model.eval()
        for other in check:
            loss_of(model, other)
        model.train()
    return {"steps": [8, 8]}


@scenario
def gradient_accumulation():
    model, optimizer = made()
    for _ in range(2):
        for i, batch in enumerate(loader()):
            (loss_of(model, batch) / 4).backward()
            if i % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
    return {"steps": [2, 2], "samples": [64, 64]}


@scenario
def two_optimizers_in_turn():
    (one, first), (two, second) = made(), made(torch.optim.Adam)
    for _ in range(2):
        for batch in loader():
            turn(one, first, batch)
            turn(two, second, batch)
    return {"steps": [8, 8]}


@scenario
def critic_steps_five_times():
    (critic, often), (generator, seldom) = made(), made(torch.optim.Adam)
    for i, batch in enumerate(loader(size=4)):
        turn(critic, often, batch)
        if i % 5 == 4:
            turn(generator, seldom, batch)
    return {"steps": [16]}


@scenario
def closure():
    model, optimizer = made(torch.optim.LBFGS, max_iter=3)
    for batch in loader():

        def again():
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            return loss

        optimizer.step(again)
    return {"steps": [8]}


@scenario
def scaler_that_skips():
    model, optimizer = made()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**4)
    skipped = 0
    for i, batch in enumerate(loader()):
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        scaler.scale(loss).backward()
        if i == 2:
            model.weight.grad.fill_(float("inf"))
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped += scaler.get_scale() < before
    assert skipped == 1
    return {"steps": [8]}


@scenario
def left_early():
    model, optimizer = made()
    train = loader()
    for _ in range(2):
        for i, batch in enumerate(train):
            if i == 5:
                break
            turn(model, optimizer, batch)
    for batch in train:
        turn(model, optimizer, batch)
    return {"steps": [5, 5, 8], "complete": [False, False, True]}


@scenario
def workers_that_stay():
    model, optimizer = made()
    train = loader(num_workers=1, persistent_workers=True)
    for _ in range(3):
        for batch in train:
            turn(model, optimizer, batch)
    return {"steps": [8, 8, 8], "samples": [64] * 3}


@scenario
def new_loader_each_epoch():
    model, optimizer = made()
    for count in (16, 32, 64):
        for batch in loader(count):
            turn(model, optimizer, batch)
    return {"steps": [2, 4, 8], "samples": [16, 32, 64]}


@scenario
def no_loader():
    model, optimizer = made()
    for _ in range(12):
        turn(model, optimizer, (x, y))
    return {"steps": [], "all_steps": 12}


@scenario
def batch_without_size():
    class Words(IterableDataset):
        def __iter__(self):
            return iter(["a", "b", "c"])

    model, optimizer = made()
    for _ in range(2):
        for _ in DataLoader(Words(), batch_size=None):
            turn(model, optimizer, (x, y))
    return {"steps": [3, 3], "samples": [None, None]}


@scenario
def own_loader_with_a_generator():
    class Mine(DataLoader):
        def _get_iterator(self):
            return (batch for batch in [(x, y)] * 5)

    model, optimizer = made()
    for batch in Mine(data, batch_size=8):
        turn(model, optimizer, batch)
    return {"steps": [], "all_steps": 5}


@scenario
def compiled_model_whole():
    model, optimizer = made()
    fast = torch.compile(model, backend="eager", fullgraph=True)
    for _ in range(2):
        for batch in loader():
            turn(fast, optimizer, batch)
    return {"steps": [8, 8]}


@scenario
def compiled_step_is_not_seen_and_not_broken():
    model, optimizer = made(torch.optim.SGD, foreach=True)
    torch.autograd.backward(loss_of(model, (x, y)))
    step = torch.compile(optimizer.step, backend="eager")
    before = model.weight.detach().clone()
    step()
    assert not torch.equal(model.weight, before)
    return {"steps": []}


@scenario
def compiled_whole_step_has_the_graphs_it_has_without_us():
    from torch._dynamo.testing import CompileCounter
    from torch._dynamo.utils import counters

    def train():
        torch._dynamo.reset()
        counters.clear()
        counter = CompileCounter()
        model, optimizer = made(torch.optim.Adam)

        @torch.compile(backend=counter)
        def step(batch):
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            optimizer.step()
            return loss

        for batch in loader():
            step(batch)
        seen = dict(counters["frames"]), dict(counters["graph_break"])
        return counter.frame_count, counter.op_count, *seen

    hooked = torch.autograd.backward
    torch.autograd.backward = hooked.__wrapped__
    train()  # what PyTorch does only once
    alone = train()
    torch.autograd.backward = hooked
    together = train()
    assert together == alone, (alone, together)
    return {"steps": []}


@scenario
def step_that_calls_the_step_above():
    class Mine(torch.optim.AdamW):
        def step(self, closure=None):
            if self.param_groups[0]["lr"] == 0:
                raise ValueError("no rate")
            return super().step(closure)

    # PyTorch hooks step() of each class at the first optimizer of that very class.
    _, plain = made(torch.optim.AdamW)
    model, optimizer = made(Mine)
    optimizer.param_groups[0]["lr"] = 0
    try:
        optimizer.step()
    except ValueError:
        optimizer.param_groups[0]["lr"] = 0.1
    losses = [[turn(model, optimizer, batch) for batch in loader()] for _ in range(2)]
    return {"steps": [8, 8], "losses": losses}


@scenario
def losses_without_a_value_are_let_be():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with FakeTensorMode():
        nn.Linear(4, 1)(torch.randn(2, 4)).sum().backward()
    with Watching():
        nn.Linear(4, 1)(torch.randn(2, 4)).sum().backward()
    assert not [name for name in seen if "local_scalar" in name]
    return {"steps": []}


@scenario
def optimizer_inside_an_optimizer():
    class Outer(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            super().__init__(inner.param_groups, {})

        def step(self, closure=None):
            return self.inner.step(closure)

    model, inner = made()
    outer = Outer(inner)
    for batch in loader():
        turn(model, outer, batch)
    return {"steps": [8]}


@scenario
def steps_of_the_script_go_first():
    import epochmeter

    model, optimizer = made()
    for epoch in range(2):
        for batch in epochmeter.steps(loader(), epoch=epoch + 5):
            epochmeter.log(loss=turn(model, optimizer, batch))
    return {"steps": [8, 8], "epochs": [5, 6]}


@scenario
def scaled_loss_is_let_go():
    import gc
    import weakref

    model, _ = made()
    scaler = torch.amp.GradScaler("cpu")
    scaled = scaler.scale(loss_of(model, (x, y)))
    gone = weakref.ref(scaled)
    del scaled
    gc.collect()
    assert gone() is None
    return {"steps": []}


@scenario
def exception_passes():
    model, optimizer = made()
    try:
        for i, batch in enumerate(loader()):
            if i == 3:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
            turn(model, optimizer, batch)
    except torch.OutOfMemoryError:
        sys.excepthook(*sys.exc_info())
    return {"steps": [3], "complete": [False], "exception": "OutOfMemoryError"}


def main():
    told = {}
    for name in sys.argv[1:] or SCENARIOS:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                torch.manual_seed(0)
                result = SCENARIOS[name]()
            except BaseException:
                result = {"error": traceback.format_exc()}
            os.write(writing, json.dumps(result).encode())
            os.close(writing)
            # As at the end of any process, but without the parent's own exit handlers.
            from epochmeter import _state

            _state._at_exit()
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            told[name] = {"pid": pid, **json.load(pipe)}
        os.waitpid(pid, 0)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
