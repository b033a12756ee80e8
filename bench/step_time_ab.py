# SPDX-License-Identifier: Apache-2.0
"""Step time on a GPU with and without a recorder, interleaved.

usage: step_time_ab.py EPOCHMETER PAIRS        runs both models and prints a table
       step_time_ab.py --child MODEL STEPS     one training; prints its median step in s
Each pair trains once plainly and once under `EPOCHMETER run`, in turn, with every step recorded. The figure is the
median over pairs of (with / without - 1) of the median step, with the range of the pairs beside it.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

STEPS = 400


def child(name, steps):
    import epochmeter
    import torch
    from torch import nn
    device = torch.device("cuda")
    if name == "launch_bound":
        model = nn.Sequential(*[layer for _ in range(60) for layer in (nn.Linear(64, 64), nn.ReLU())], nn.Linear(64, 1))
        x = torch.randn(64, 64, device=device)
    else:
        model = nn.Sequential(nn.Linear(8192, 8192), nn.ReLU(), nn.Linear(8192, 8192), nn.ReLU(), nn.Linear(8192, 1))
        x = torch.randn(8192, 8192, device=device)
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    epochmeter.start()
    times = []
    for number in epochmeter.steps(range(steps), epoch=0):
        begin = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        value = loss.item()  # waits for the GPU, as a training that prints its loss does
        epochmeter.log(loss=value)
        if number >= steps // 4:
            times.append(time.perf_counter() - begin)
    print(statistics.median(times))


def once(binary, name, recorded, folder):
    command = [sys.executable, __file__, "--child", name, str(STEPS)]
    env = dict(os.environ, PYTHONPATH=str(pathlib.Path(__file__).resolve().parents[1] / "python"))
    if recorded:
        command = [binary, "run", "-q", "--force", "-o", f"{folder}/run.emr", "--", *command]
    else:
        env["EPOCHMETER"] = "0"
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return float(done.stdout.strip().splitlines()[-1])


def main(binary, pairs):
    print("model          pairs  median step  with/without - 1: median  [all pairs]")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("launch_bound", "compute_bound"):
            ratios, plain = [], []
            for pair in range(pairs):
                order = (False, True) if pair % 2 == 0 else (True, False)
                step = {recorded: once(binary, name, recorded, folder) for recorded in order}
                ratios.append(step[True] / step[False] - 1)
                plain.append(step[False])
            shown = " ".join(f"{100 * r:+.2f}" for r in sorted(ratios))
            print(f"{name:14s} {pairs:5d}  {1e3 * statistics.median(plain):8.3f} ms  "
                  f"{100 * statistics.median(ratios):+.2f} %  [{shown}]", flush=True)


if sys.argv[1] == "--child":
    child(sys.argv[2], int(sys.argv[3]))
else:
    main(sys.argv[1], int(sys.argv[2]))
