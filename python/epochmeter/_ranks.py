# SPDX-License-Identifier: Apache-2.0
"""Which rank this process is, from what its launcher put into the environment.

The recorder reads the same from /proc/PID/environ; tests/vectors/ranks.json holds both to it.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional, Tuple


class Ranks(NamedTuple):
    """None is unknown. `source` names the launcher, None when there is no rank at all."""

    rank: Optional[int] = None
    local_rank: Optional[int] = None
    world: Optional[int] = None
    source: Optional[str] = None


# Launcher, then the names that may hold rank, local rank and world size; the first launcher whose
# rank is a number wins. Slurm is near the end: under torchrun its SLURM_PROCID counts nodes.
_LAUNCHERS: Tuple[Tuple[str, Tuple[str, ...], Tuple[str, ...], Tuple[str, ...]], ...] = (
    (
        "paddle",
        ("PADDLE_TRAINER_ID", "PADDLE_GLOBAL_RANK"),
        ("PADDLE_LOCAL_RANK", "PADDLE_RANK_IN_NODE"),
        ("PADDLE_TRAINERS_NUM", "PADDLE_GLOBAL_SIZE"),
    ),
    ("torchrun", ("RANK",), ("LOCAL_RANK",), ("WORLD_SIZE",)),
    ("horovod", ("HOROVOD_RANK",), ("HOROVOD_LOCAL_RANK",), ("HOROVOD_SIZE",)),
    (
        "openmpi",
        ("OMPI_COMM_WORLD_RANK",),
        ("OMPI_COMM_WORLD_LOCAL_RANK",),
        ("OMPI_COMM_WORLD_SIZE",),
    ),
    (
        "mvapich",
        ("MV2_COMM_WORLD_RANK",),
        ("MV2_COMM_WORLD_LOCAL_RANK",),
        ("MV2_COMM_WORLD_SIZE",),
    ),
    ("pmi", ("PMI_RANK",), ("MPI_LOCALRANKID",), ("PMI_SIZE",)),
    ("pmix", ("PMIX_RANK",), (), ()),
    ("lsf", ("JSM_NAMESPACE_RANK",), ("JSM_NAMESPACE_LOCAL_RANK",), ("JSM_NAMESPACE_SIZE",)),
    ("tf_config", (), (), ()),
    ("slurm", ("SLURM_PROCID",), ("SLURM_LOCALID",), ("SLURM_NTASKS",)),
    ("kubernetes", ("JOB_COMPLETION_INDEX",), (), ()),
)


def _number(environment: Mapping[str, str], names: Tuple[str, ...], least: int) -> Optional[int]:
    for name in names:
        text = environment.get(name, "").strip()
        if len(text) < 20 and text.isascii() and text.isdigit() and least <= int(text) < 2**31:
            return int(text)
    return None


def _members(cluster: Any, job: str) -> int:
    members = cluster.get(job) if isinstance(cluster, dict) else None
    return len(members) if isinstance(members, (list, dict)) else 0


def _tf_config(text: str) -> Ranks:
    """TensorFlow's TF_CONFIG: the chief is rank 0, workers follow; the others have no rank."""
    if not text:
        return Ranks()
    import json

    try:
        config = json.loads(text)
        job, index = config["task"]["type"], config["task"]["index"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return Ranks()
    cluster = config.get("cluster")
    chiefs = _members(cluster, "chief") + _members(cluster, "master")
    index = _number({"index": str(index)}, ("index",), 0)
    if index is None or job not in ("chief", "master", "worker"):
        return Ranks()
    rank = index if job != "worker" else chiefs + index
    return Ranks(rank, None, chiefs + _members(cluster, "worker") or None, "tf_config")


def find(environment: Mapping[str, str]) -> Ranks:
    """Reads the rank; what is missing or no number stays None."""
    for source, rank_names, local_names, world_names in _LAUNCHERS:
        if source == "tf_config":
            ranks = _tf_config(environment.get("TF_CONFIG", ""))
            if ranks.rank is not None:
                return ranks
            continue
        rank = _number(environment, rank_names, 0)
        if rank is not None:
            return Ranks(
                rank,
                _number(environment, local_names, 0),
                _number(environment, world_names, 1),
                source,
            )
    return Ranks()
