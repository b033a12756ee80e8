# SPDX-License-Identifier: Apache-2.0
"""Which rank this process is, from what its launcher put into the environment."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Tuple


class Ranks(NamedTuple):
    """None is unknown. `source` names the launcher, None when there is no rank at all."""

    rank: Optional[int] = None
    local_rank: Optional[int] = None
    world: Optional[int] = None
    source: Optional[str] = None


# Launcher, then the names that may hold rank, local rank and world size; the first launcher whose
# rank is a number wins. Slurm is last: under torchrun its SLURM_PROCID counts nodes, not ranks.
_LAUNCHERS: Tuple[Tuple[str, Tuple[str, ...], Tuple[str, ...], Tuple[str, ...]], ...] = (
    (
        "paddle",
        ("PADDLE_TRAINER_ID", "PADDLE_GLOBAL_RANK"),
        ("PADDLE_LOCAL_RANK", "PADDLE_RANK_IN_NODE"),
        ("PADDLE_TRAINERS_NUM", "PADDLE_GLOBAL_SIZE"),
    ),
    ("torchrun", ("RANK",), ("LOCAL_RANK",), ("WORLD_SIZE",)),
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
    ("lsf", ("JSM_NAMESPACE_RANK",), ("JSM_NAMESPACE_LOCAL_RANK",), ("JSM_NAMESPACE_SIZE",)),
    ("slurm", ("SLURM_PROCID",), ("SLURM_LOCALID",), ("SLURM_NTASKS",)),
)


def _number(environment: Mapping[str, str], names: Tuple[str, ...], least: int) -> Optional[int]:
    for name in names:
        text = environment.get(name, "").strip()
        if text.isascii() and text.isdigit() and least <= int(text) < 2**31:
            return int(text)
    return None


def find(environment: Mapping[str, str]) -> Ranks:
    """Reads the rank; what is missing or no number stays None."""
    for source, rank_names, local_names, world_names in _LAUNCHERS:
        rank = _number(environment, rank_names, 0)
        if rank is not None:
            return Ranks(
                rank,
                _number(environment, local_names, 0),
                _number(environment, world_names, 1),
                source,
            )
    return Ranks()
