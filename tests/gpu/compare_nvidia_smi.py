# SPDX-License-Identifier: Apache-2.0
"""Per-epoch values of a report beside those of `nvidia-smi` that ran at the same time.

usage: compare_nvidia_smi.py REPORT.json SMI.csv
SMI.csv: nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used,power.draw,temperature.gpu
         --format=csv,noheader,nounits -lms 200
Ends with 1 when an epoch's figures differ by more than two samplings of one signal can.
"""
import datetime
import json
import statistics
import sys

MIB = 1024 * 1024


def wall_ns(text):
    moment = datetime.datetime.strptime(text.strip(), "%Y/%m/%d %H:%M:%S.%f").astimezone()
    return int(moment.timestamp() * 1e9)


def load(path):
    rows = []
    for line in open(path):
        parts = [p.strip() for p in line.split(",")]
        try:
            rows.append((wall_ns(parts[0]), int(parts[1]), *map(float, parts[2:6])))
        except (ValueError, IndexError):
            continue  # the last line may be torn
    return rows


def mean(values):
    return statistics.fmean(values) if values else None


def main():
    data = json.load(open(sys.argv[1]))["data"]
    smi = load(sys.argv[2])
    bad = 0
    print("rank epoch gpu  n_ours n_smi  util% ours/smi   mem_max MiB ours/smi   power W ours/smi   temp ours/smi  sm_active")
    for row in data["epochs"]:
        begin, end = wall_of(row["begin"]), wall_of(row["end"])
        for gpu in row["gpus"]:
            inside = [r for r in smi if r[1] == gpu["gpu"] and begin <= r[0] <= end]
            util, memory = mean([r[2] for r in inside]), max((r[3] for r in inside), default=None)
            power, temp = mean([r[4] for r in inside]), max((r[5] for r in inside), default=None)
            ours = {k: gpu.get(k) or {} for k in ("utilization_ratio", "memory_used_bytes", "power_w", "temperature_c", "sm_active_ratio")}
            our_util = 100 * ours["utilization_ratio"].get("mean", float("nan"))
            our_memory = ours["memory_used_bytes"].get("max", float("nan")) / MIB
            our_power, our_temp = ours["power_w"].get("mean", float("nan")), ours["temperature_c"].get("max", float("nan"))
            print(f"{row['rank']} {row['epoch']} {gpu['gpu']}  {ours['utilization_ratio'].get('count')} {len(inside)}  {our_util:.1f}/{util}  "
                  f"{our_memory:.0f}/{memory}  {our_power:.1f}/{power}  {our_temp}/{temp}  {ours['sm_active_ratio'].get('mean')}")
            if not inside:
                continue
            bad += not abs(our_util - util) <= 8
            bad += not abs(our_memory - memory) <= 0.03 * memory
            bad += not abs(our_power - power) <= max(0.08 * power, 25)
            bad += not abs(our_temp - temp) <= 2
            bad += "mean" not in ours["sm_active_ratio"]
    print("differences:", bad)
    return 1 if bad else 0


def wall_of(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1e9)


sys.exit(main())
