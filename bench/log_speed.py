# SPDX-License-Identifier: Apache-2.0
"""How fast `log` reads, against other tools that read the same file, in one run.

usage: log_speed.py BUILD [--megabytes 1000] [--runs 3] [--files mixed dense shapes] [--logs FOLDER] [--dir FOLDER]
                    [--only WORD] [--json FILE]

BUILD is a build folder with the program (release for figures). Three files are made: "mixed", whole logs of FOLDER
(../shared/logs, else tests/logs) in a new random order each time around; "dense", one line format with other numbers in
each line; and "shapes", in which no two lines have the same words, the worst case for what is learned of lines. Each
tool reads each file RUNS times from a warm page cache, bound to one core (and `log` also to two); the fastest run
counts, slow tools run once. CPU and peak memory are those of the tool's process (wait4). What is not installed is said
and left out. Ends with 1 when `log` counts other records in "dense" than were written, is slower on one core than
LIMITS says, or takes more than 200 MB.
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PATTERN = "[Ll]oss[:=]? *([0-9]+[.][0-9]+)"
PYTHON = """import re, sys
find = re.compile(sys.argv[1]).search
total, count = 0.0, 0
with open(sys.argv[2], encoding="utf-8", errors="replace") as lines:
    for line in lines:
        found = find(line)
        if found:
            count += 1
            total += float(found.group(1))
print(count)
"""
LIMITS = {"mixed": 500e6, "dense": 400e6, "shapes": 50e6}  # bytes/s on one core
MOST_BYTES = 200e6
SLOW_S = 30  # a tool that took so long is not run again


def readable_logs(folder):
    """Logs as bytes; not those in UTF-16, which can't stand in the middle of another file."""
    for path in sorted(folder.iterdir()):
        if path.suffix in (".md", ".tsv") or path.name.endswith(".expected.json") or not path.is_file():
            continue
        data = path.read_bytes()
        if data and b"\0" not in data[:1000]:
            yield data if data.endswith(b"\n") else data + b"\n"


def make_mixed(path, size, folder):
    logs, chance, left = list(readable_logs(folder)), random.Random(6), size
    with open(path, "wb") as out:
        while left > 0:
            chance.shuffle(logs)
            for data in logs:
                out.write(data)
                left -= len(data)
                if left <= 0:
                    break


def make_dense(path, size):
    """Returns how many lines it wrote, each of which is a record."""
    chance, written, count = random.Random(7), 0, 0
    begin, steps = datetime.datetime(2026, 3, 1), 14658
    with open(path, "w") as out:
        while written < size:
            lines = []
            for _ in range(10_000):
                epoch, step = divmod(count * 20, steps)
                when = begin + datetime.timedelta(seconds=count * 17)
                loss_a, loss_b = 9 * chance.random(), 3 * chance.random()
                cost = 0.8 + 0.2 * chance.random()
                lines.append(
                    f"[{when:%m/%d %H:%M:%S}] ppdet.engine INFO: "
                    f"Epoch: [{epoch}] [{step:5d}/{steps}] learning_rate: {0.005 * chance.random():.6f} "
                    f"loss_cls: {loss_a:.6f} loss_reg: {loss_b:.6f} loss: {loss_a + loss_b:.6f} "
                    f"eta: {count % 9} days, {count % 24}:{count % 60:02d}:{count % 59:02d} batch_cost: {cost:.4f} "
                    f"data_cost: {chance.random() / 1000:.4f} ips: {2 / cost:.4f} images/s\n")
                count += 1
            text = "".join(lines)
            written += len(text)
            out.write(text)
    return count


def make_shapes(path, size):
    """No two lines have the same words; about every second one has numbers with names."""
    chance, written, count = random.Random(8), 0, 0
    letters = "abcdefghijklmnopqrstuvwxyz"
    with open(path, "w") as out:
        while written < size:
            lines = []
            for _ in range(10_000):
                words, rest = [], count
                for _ in range(6):
                    words.append(letters[rest % 26] + "".join(chance.choices(letters, k=chance.randrange(2, 9))))
                    rest //= 26
                figure = f" {words[0]}_{words[1]}: {chance.random():.4f} step {count}" if count % 2 else ""
                lines.append(f"2026-03-01 10:11:12 INFO {' '.join(words)}{figure}\n")
                count += 1
            text = "".join(lines)
            written += len(text)
            out.write(text)


MAKERS = {"mixed": lambda path, size, logs: make_mixed(path, size, logs),
          "dense": lambda path, size, logs: make_dense(path, size),
          "shapes": lambda path, size, logs: make_shapes(path, size)}


def tools(program, lnav_home):
    """Name, command before the file, command after it, environment, cores."""
    c_locale = {"LC_ALL": "C"}
    utf8 = {"LC_ALL": "C.UTF-8"}
    yield "epochmeter log", [program, "log"], ["--json", "--threads", "1"], {}, 1
    yield "epochmeter log, two cores", [program, "log"], ["--json", "--threads", "2"], {}, 2
    yield "cat > /dev/null", ["cat"], [], {}, 1
    yield "wc -l", ["wc", "-l"], [], {}, 1
    yield "grep -cE, C locale", ["grep", "-acE", PATTERN], [], c_locale, 1
    yield "grep -cE, UTF-8", ["grep", "-acE", PATTERN], [], utf8, 1
    yield "rg -c", ["rg", "-a", "-c", "-j1", PATTERN], [], {}, 1
    yield "python3, one regex", [sys.executable, "-c", PYTHON, PATTERN], [], utf8, 1
    yield "lnav, count of all lines", ["lnav", "-n", "-c", ";SELECT count(*) FROM all_logs"], [], {
        "HOME": lnav_home, "TERM": "xterm"}, 1


def run_once(command, env, cores):
    """Wall and CPU seconds, peak bytes, what it printed."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=dict(os.environ, **env), preexec_fn=lambda: os.sched_setaffinity(0, cores))
    printed = process.stdout.read() if command[0] != "cat" else drain(process.stdout)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return {"wall_s": time.monotonic() - begin, "cpu_s": usage.ru_utime + usage.ru_stime,
            "peak_bytes": usage.ru_maxrss * 1024, "exit": process.returncode, "printed": printed}


def drain(pipe):
    while pipe.read(1 << 20):
        pass
    return b""


def measure(path, size, options, program, lnav_home):
    rows = []
    all_cores = sorted(os.sched_getaffinity(0))
    for name, before, after, env, cores in tools(program, lnav_home):
        if options.only and options.only not in name:
            continue
        if shutil.which(before[0]) is None:
            print(f"  {name}: not installed, left out")
            continue
        if cores > len(all_cores):
            print(f"  {name}: fewer cores than that, left out")
            continue
        runs = [run_once([*before, str(path), *after], env, all_cores[:cores])]
        while len(runs) < options.runs and sum(run["wall_s"] for run in runs) < SLOW_S:
            runs.append(run_once([*before, str(path), *after], env, all_cores[:cores]))
        best = min(runs, key=lambda run: run["wall_s"])
        row = {"tool": name, "bytes_per_s": size / best["wall_s"], "cpu_s": best["cpu_s"], "exit": best["exit"],
               "peak_bytes": max(run["peak_bytes"] for run in runs), "wall_s": best["wall_s"]}
        if before[0] == program and best["exit"] == 0:
            row["records"] = json.loads(best["printed"])["data"]["records"]
        rows.append(row)
    return rows


def print_rows(title, size, rows):
    print(f"\n{title}: {size / 1e6:.0f} MB")
    print(f"  {'tool':28} {'MB/s':>8} {'log is':>10} {'CPU s':>7} {'peak MB':>8}")
    ours = next((row["bytes_per_s"] for row in rows), 0)
    for row in rows:
        times = f"{ours / row['bytes_per_s']:.2f} x"
        said = "" if row["exit"] in (0, 1) else f"  exit {row['exit']}"
        print(f"  {row['tool']:28} {row['bytes_per_s'] / 1e6:8.0f} {times:>10} {row['cpu_s']:7.2f} "
              f"{row['peak_bytes'] / 1e6:8.0f}{said}")


def complaints(title, rows, written):
    ours = [row for row in rows if row["tool"].startswith("epochmeter")]
    for row in ours:
        if row["exit"] != 0:
            yield f"{title}: {row['tool']} ended with {row['exit']}"
        if row["peak_bytes"] > MOST_BYTES:
            yield f"{title}: {row['tool']} took {row['peak_bytes'] / 1e6:.0f} MB"
        if written is not None and row.get("records") != written:
            yield f"{title}: {row['tool']} counts {row.get('records')} records of {written}"
    if ours and ours[0]["bytes_per_s"] < LIMITS[title]:
        yield f"{title}: {ours[0]['bytes_per_s'] / 1e6:.0f} MB/s on one core, not {LIMITS[title] / 1e6:.0f}"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--files", nargs="+", choices=list(MAKERS), default=list(MAKERS))
    parser.add_argument("--logs", type=pathlib.Path, help="folder of logs for the mixed file")
    parser.add_argument("--dir", type=pathlib.Path, help="where the two files are made")
    parser.add_argument("--only", help="tools with this word in their name")
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def main():
    options = parse()
    program = str((options.build / "epochmeter").resolve())
    shared = pathlib.Path(os.environ.get("EPOCHMETER_SHARED", ROOT.parent / "shared")) / "logs"
    logs = options.logs or (shared if shared.is_dir() else ROOT / "tests" / "logs")
    wrong, result = [], {"cores": len(os.sched_getaffinity(0)), "logs": logs.name, "runs": options.runs}
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        for title in options.files:
            path, size = pathlib.Path(folder) / f"{title}.log", options.megabytes * 1_000_000
            written = MAKERS[title](path, size, logs)
            run_once(["cat", str(path)], {}, sorted(os.sched_getaffinity(0)))  # into the page cache
            size = path.stat().st_size
            rows = measure(path, size, options, program, folder)
            print_rows(title, size, rows)
            wrong += complaints(title, rows, written)
            result[title] = {"bytes": size, "rows": rows, "records": written}
            path.unlink()
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
