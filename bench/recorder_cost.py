# SPDX-License-Identifier: Apache-2.0
"""What recording costs: CPU, memory and wakeups of each process of epochmeter beside a training that does nothing.

usage: recorder_cost.py BUILD [--seconds 60] [--warm 15] [--case NAME ...] [--json FILE]

BUILD is a build folder with the program and nvml-replay (release for figures). Each case runs `epochmeter run` over
replayed H200 whose calls take the CPU time measured on real ones (EPOCHMETER_REPLAY_LATENCY=1). CPU is the scheduler's
own count of ns of all threads, after the first WARM seconds: starting is not part of it, and is printed beside it.
Private memory is what a process has for itself; resident counts shared pages of the program in each process anew.
With nvml-tap in BUILD (bench preset) the part of the sampler's CPU that was spent inside NVML stands beside it.
Ends with 1 when the case "8gpu" takes more than 0.5 % of a core or 40 MB.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
CASES = {  # GPUs, interval, processes of the training, flags
    "8gpu": (8, "1s", 1, []),
    "8gpu-10hz": (8, "100ms", 1, []),
    "8gpu-65processes": (8, "1s", 65, []),
    "8gpu-no-budget": (8, "1s", 1, ["--cpu-budget", "off"]),
    "2gpu": (2, "1s", 1, []),
    "2gpu-10hz": (2, "100ms", 1, []),
    "1gpu": (1, "1s", 1, []),
    "1gpu-10hz": (1, "100ms", 1, []),
    "no-gpu": (0, "1s", 1, []),
    "no-gpu-10hz": (0, "100ms", 1, []),
    "no-gpu-65processes": (0, "1s", 65, []),
}
TARGET_CORE_RATIO = 0.005
TARGET_BYTES = 40e6
LAUNCHER, ROLES = "launcher", {"epm-recorder": "recorder", "epm-sampler": "sampler", "epm-relay": "relay"}


def train(processes):
    """One process, or a launcher with eight ranks that have workers, all of them asleep."""
    if processes == 1:
        os.execvp("sleep", ["sleep", "100000"])
    os.setpgrp()  # ends with its ranks and workers
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    workers = (processes - 1) // 8 - 1
    for rank in range(8):
        subprocess.Popen([sys.executable, HERE, "--rank", str(workers)],
                         env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="8"))
    signal.pause()


def train_rank(workers):
    for _ in range(workers):
        if os.fork() == 0:
            break
    signal.pause()


def fields(path, names):
    text = pathlib.Path(path).read_text()
    return [int(found.group(1)) if (found := re.search(rf"^{name}:\s+(\d+)", text, re.M)) else 0 for name in names]


class Process:
    """Counters of one process at one time."""

    def __init__(self, pid):
        self.cpu_s, self.wakeups = 0.0, 0
        for task in os.listdir(f"/proc/{pid}/task"):
            folder = f"/proc/{pid}/task/{task}"
            self.cpu_s += int(pathlib.Path(folder, "schedstat").read_text().split()[0]) / 1e9
            self.wakeups += fields(f"{folder}/status", ["voluntary_ctxt_switches"])[0]
        rollup = fields(f"/proc/{pid}/smaps_rollup", ["Rss", "Pss", "Private_Clean", "Private_Dirty"])
        self.rss, self.pss = rollup[0] * 1024, rollup[1] * 1024
        self.private = (rollup[2] + rollup[3]) * 1024


def helpers(launcher):
    """Pid of each process of ours, by its role."""
    found = {LAUNCHER: launcher}
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = pathlib.Path("/proc", entry, "stat").read_text()
        except OSError:
            continue
        name = stat[stat.index("(") + 1: stat.rindex(")")]
        parents[int(entry)] = (int(stat[stat.rindex(")") + 2:].split()[1]), name)
    for pid, (parent, name) in parents.items():
        if name in ROLES and launcher in (parent, parents.get(parent, (0, ""))[0]):
            found[ROLES[name]] = pid
    return found


def environment(folder, build, gpus, tap):
    env = {k: v for k, v in os.environ.items() if not k.startswith("EPOCHMETER")}
    env["XDG_RUNTIME_DIR"] = str(folder)
    script = json.loads((HERE.parent / "h200x8.json").read_text())
    if gpus == 0:
        return env
    script["devices"]["count"] = gpus
    (folder / "gpus.json").write_text(json.dumps(script))
    replay = build / "nvml-replay" / "libnvidia-ml.so.1"
    env.update(EPOCHMETER_NVML_LIBRARY=str(build / "nvml-tap" if tap else replay.parent),
               EPOCHMETER_REPLAY=str(folder / "gpus.json"), EPOCHMETER_REPLAY_LATENCY="1",
               EPOCHMETER_TAP_LIBRARY=str(replay), EPOCHMETER_TAP_OUT=str(folder / "tap.txt"))
    return env


def periods(build, run_file):
    """Source -> period in s of those that are read less often, and other words about the budget."""
    done = subprocess.run([build / "epochmeter", "export", run_file, "-f", "jsonl"], capture_output=True, text=True,
                          check=True)
    slow = {}
    for line in done.stdout.splitlines():
        record = json.loads(line)
        fields = record.get("fields", {})
        if record.get("event") == "source" and fields.get("state") in ("slowed", "restored", "off", "exceeded"):
            slow[record["name"]] = round(fields["period_s"], 3) if "period_s" in fields else fields["state"]
    return slow


def measure(build, case, args):
    gpus, interval, processes, flags = CASES[case]
    tap = gpus > 0 and (build / "nvml-tap" / "libnvidia-ml.so.1").exists()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        env = environment(folder, build, gpus, tap)
        env["EPOCHMETER_TAP_WARM_S"] = str(args.warm)
        command = [build / "epochmeter", "run", "-q", "-i", interval, *flags, "-o", folder / "run.emr"]
        if gpus == 0:
            command.append("--no-gpu")
        launcher = subprocess.Popen([*command, "--", sys.executable, HERE, "--train", str(processes)], env=env)
        try:
            time.sleep(args.warm)
            pids = helpers(launcher.pid)
            before = {role: Process(pid) for role, pid in pids.items()}
            begin = time.monotonic()
            time.sleep(args.seconds)
            after = {role: Process(pid) for role, pid in pids.items()}
            elapsed = time.monotonic() - begin
        finally:
            launcher.send_signal(signal.SIGTERM)
            launcher.wait()
        rows = {role: {"core_ratio": (after[role].cpu_s - before[role].cpu_s) / elapsed,
                       "start_cpu_s": before[role].cpu_s, "rss": after[role].rss, "pss": after[role].pss,
                       "private": after[role].private,
                       "wakeups_per_s": (after[role].wakeups - before[role].wakeups) / elapsed} for role in pids}
        tapped = (folder / "tap.txt").read_text().splitlines()[-1] if (folder / "tap.txt").exists() else ""
        return rows, periods(build, folder / "run.emr"), tapped


def show(case, rows, slow, tapped):
    total = {key: sum(row[key] for row in rows.values()) for key in next(iter(rows.values()))}
    print(f"{case}\n  {'process':<10}{'core':>9}{'private':>10}{'pss':>9}{'rss':>9}{'wakeups/s':>11}{'start':>9}")
    for role, row in [*rows.items(), ("all", total)]:
        print(f"  {role:<10}{row['core_ratio']:>9.3%}{row['private'] / 1e6:>7.1f} MB{row['pss'] / 1e6:>6.1f} MB"
              f"{row['rss'] / 1e6:>6.1f} MB{row['wakeups_per_s']:>11.1f}{row['start_cpu_s'] * 1e3:>6.0f} ms")
    if tapped:
        print("  " + tapped)
    for source, period in sorted(slow.items()):
        print(f"  {source}: {period}" + (" s" if isinstance(period, (int, float)) else ""))
    sys.stdout.flush()
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--warm", type=int, default=15)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    good, figures = True, {}
    for case in args.case or CASES:
        rows, slow, tapped = measure(args.build.resolve(), case, args)
        total = show(case, rows, slow, tapped)
        figures[case] = {"processes": rows, "all": total, "periods_s": slow, "tap": tapped}
        if case == "8gpu":
            good = total["core_ratio"] <= TARGET_CORE_RATIO and total["private"] <= TARGET_BYTES
            print(f"  {'within' if good else 'OVER'} {TARGET_CORE_RATIO:.1%} of a core and {TARGET_BYTES / 1e6:.0f} MB")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        train(int(sys.argv[2]))
    elif sys.argv[1:2] == ["--rank"]:
        train_rank(int(sys.argv[2]))
    else:
        sys.exit(main())
