# SPDX-License-Identifier: Apache-2.0
"""What a training program of this folder knows of itself, written beside what epochmeter records.

The file named by TRUTH_FILE gets {"epochs": [...], ...}; without it nothing is written. With
several ranks, the rank is put into its name.
"""
import json
import os
import subprocess


class Truth:
    def __init__(self, framework):
        self.data = {"framework": framework, "epochs": []}

    def epoch(self, epoch, steps, scalars=None, eval_scalars=None, allocator=None):
        self.data["epochs"].append({"epoch": epoch, "steps": steps, "scalars": scalars or {},
                                    "eval": eval_scalars or {}, "allocator": allocator})

    def write(self, **more):
        self.data.update(more)
        path = os.environ.get("TRUTH_FILE")
        if path:
            rank = os.environ.get("RANK")
            with open(path if rank is None else f"{path}.{rank}", "w") as file:
                json.dump(self.data, file)


def torch_allocator():
    """PyTorch's own counters now; None where no GPU is in use."""
    import torch

    if not torch.cuda.is_initialized():
        return None
    return {"allocated_bytes": torch.cuda.memory_allocated(), "reserved_bytes": torch.cuda.memory_reserved(),
            "max_allocated_bytes": torch.cuda.max_memory_allocated(),
            "max_reserved_bytes": torch.cuda.max_memory_reserved()}


def torch_gpu():
    """UUID of the GPU that this process computes on; None without one."""
    import torch

    if not torch.cuda.is_initialized():
        return None
    return "GPU-" + str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)


def first_gpu():
    """UUID of the first visible GPU, for frameworks that do not know it; None without one."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    try:
        asked = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader", "-i", visible],
                               capture_output=True, text=True, timeout=30)
    except OSError:
        return None
    return asked.stdout.strip() if asked.returncode == 0 else None
