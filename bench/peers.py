# SPDX-License-Identifier: Apache-2.0
"""What a recorder and its peers cost while nothing else happens: peers.py EPOCHMETER [SECONDS] [GPUS]

Each runs for SECONDS (40) at one reading a second, one after the other, idle GPUs; its processes' CPU time is read from
/proc ten seconds after the start and at the end, so that starting up does not count. PSS is the proportional set size
of them all. A peer that is not installed is a line that says so.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

WARM_S = 10
TICKS_PER_S = os.sysconf("SC_CLK_TCK")

PYNVML = """
import sys, time, pynvml as n
n.nvmlInit()
gpus = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
out = open("/dev/null", "w")
while True:
    for g in gpus:
        u, m = n.nvmlDeviceGetUtilizationRates(g), n.nvmlDeviceGetMemoryInfo(g)
        print(u.gpu, u.memory, m.used, m.total, n.nvmlDeviceGetPowerUsage(g), n.nvmlDeviceGetTemperature(g, 0),
              n.nvmlDeviceGetClockInfo(g, 0), n.nvmlDeviceGetClockInfo(g, 1), n.nvmlDeviceGetPerformanceState(g),
              len(n.nvmlDeviceGetComputeRunningProcesses(g)), file=out, flush=True)
    time.sleep(1)
"""
NVITOP = """
import time
from nvitop import Device, ResourceMetricCollector
rows = []
collector = ResourceMetricCollector(Device.all(), root_pids={1}).daemonize(lambda m: rows.append(len(m)) or True, interval=1.0)
time.sleep(100000)
"""
WANDB = """
import time, wandb
run = wandb.init(mode="offline", dir="%s", settings=wandb.Settings(x_stats_sampling_interval=1.0, console="off"))
time.sleep(100000)
"""
QUERY = ("timestamp,index,utilization.gpu,utilization.memory,memory.used,memory.total,power.draw,temperature.gpu,"
         "clocks.sm,clocks.mem,pstate,clocks_event_reasons.active")


def tree(root):
    """The processes below `root` and itself, by pid."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(stat[stat.rindex(")") + 2:].split()[1]), []).append(int(entry.name))
    found, left = [], [root]
    while left:
        pid = left.pop()
        found.append(pid)
        left += parents.get(pid, [])
    return found


def cpu_s(pids):
    """Of threads that live, in ns as the scheduler counts; of children that have ended, in clock ticks."""
    total = 0.0
    for pid in pids:
        try:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
            threads = [int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")]
        except OSError:
            continue
        total += sum(threads) / 1e9 + sum(map(int, stat[stat.rindex(")") + 2:].split()[13:15])) / TICKS_PER_S
    return total


def pss_mib(pids):
    total = 0
    for pid in pids:
        try:
            rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total / 1024


def measure(command, seconds, env=None):
    """CPU as a share of a core and PSS in MiB, or why not."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env={**os.environ, **(env or {})})
        try:
            time.sleep(WARM_S)
            began, before = time.monotonic(), cpu_s(tree(process.pid))
            time.sleep(seconds)
            if process.poll() is not None:
                log.seek(0)
                lines = log.read().decode(errors="replace").strip().splitlines()
                return f"ended with {process.returncode}: {lines[-1] if lines else 'no message'}"
            pids = tree(process.pid)
            return (cpu_s(pids) - before) / (time.monotonic() - began), pss_mib(pids)
        finally:
            for pid in reversed(tree(process.pid)):
                try:
                    os.kill(pid, 15)
                except OSError:
                    pass
            process.wait()


def main(binary, seconds, gpus):
    folder = tempfile.mkdtemp(prefix="epm-peers")
    python, smi = sys.executable, shutil.which("nvidia-smi") or "nvidia-smi"
    select = [] if gpus is None else ["--all-gpus"]
    rows = [("epochmeter run, all of it", [binary, "run", "-q", *select, "-o", f"{folder}/run.emr", "--", "sleep", "100000"]),
            ("pynvml loop, ten figures a GPU", [python, "-c", PYNVML]),
            ("nvidia-smi --loop=1, twelve figures", [smi, "--loop=1", "--format=csv", f"--query-gpu={QUERY}"]),
            ("nvidia-smi dmon -d 1", [smi, "dmon", "-d", "1", "-s", "pucvmet"]),
            ("nvitop ResourceMetricCollector", [python, "-c", NVITOP]),
            ("wandb, offline, 1 s", [python, "-c", WANDB % folder])]
    print(f"{'one reading a second':38s} {'% of a core':>11s} {'PSS MiB':>8s} {'CPU, ours = 1':>14s}")
    ours = None
    for name, command in rows:
        try:
            figures = measure(command, seconds, {"WANDB_SILENT": "true"})
        except OSError as error:
            figures = str(error)
        if isinstance(figures, str):
            print(f"{name:38s} {figures}", flush=True)
            continue
        share, pss = figures
        ours = ours or share
        print(f"{name:38s} {100 * share:11.3f} {pss:8.1f} {share / ours if ours else 0:14.2f}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 40, sys.argv[3] if len(sys.argv) > 3 else None)
