#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a script for the replay library from a public capture of a GPU machine.

Understands what `nvidia-smi` printed, gathered in one file of sections (the captures of
nvidia_gpu_exporter) or alone (`nvidia-smi -q`), and the YAML profiles of mocknvml. What the
capture calls N/A gets no value, so that the library answers NOT_SUPPORTED.

    from_capture.py CAPTURE [-o SCRIPT] [--load-at SECONDS]

A capture with an idle and a load part becomes a script that changes at --load-at.
"""
import argparse
import json
import pathlib
import sys
from typing import Any, Dict, List

import profile_yaml
import smi_text


def convert(path: pathlib.Path, load_at_s: float) -> Dict[str, Any]:
    """The script for one capture. Raises ValueError when the file is none that it knows."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix in (".yaml", ".yml"):
        script = profile_yaml.convert(text)
    else:
        script = smi_text.convert(text, load_at_s)
    if not script["devices"]:
        raise ValueError("no GPU found in " + path.name)
    return {"name": path.stem, "comment": "made by from_capture.py from " + path.name, **script}


def main(arguments: List[str]) -> int:
    parser = argparse.ArgumentParser(description="Makes a replay script from a public capture.")
    parser.add_argument("capture", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--load-at", type=float, default=5.0, metavar="SECONDS")
    options = parser.parse_args(arguments)
    try:
        script = convert(options.capture, options.load_at)
    except (OSError, ValueError) as error:
        print("from_capture: " + str(error), file=sys.stderr)
        return 1
    text = json.dumps(script, indent=1) + "\n"
    if options.output is None:
        sys.stdout.write(text)
    else:
        options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
