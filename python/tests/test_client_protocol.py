# SPDX-License-Identifier: Apache-2.0
"""The encoder against the vectors that the recorder's decoder runs too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from epochmeter import _protocol

VECTORS = Path(__file__).resolve().parents[2] / "tests" / "vectors" / "protocol"


def cases() -> List[Dict[str, Any]]:
    found: List[Dict[str, Any]] = []
    for path in sorted(VECTORS.glob("*.json")):
        found.extend(json.loads(path.read_text(encoding="utf-8")))
    return found


def encoded_cases() -> List[Any]:
    return [pytest.param(case, id=case["name"]) for case in cases() if "encode" in case]


def test_vectors_are_there_in_every_kind() -> None:
    assert len({case["name"] for case in cases()}) == len(cases()) > 100
    kinds = {case["encode"]["kind"] for case in cases() if "encode" in case}
    assert kinds == {
        "hello", "train_begin", "train_end", "epoch_begin", "epoch_end", "step", "phase_begin",
        "phase_end", "memory", "scalar", "exception", "mark",
    }  # fmt: skip


@pytest.mark.parametrize("case", encoded_cases())
def test_encoder_writes_the_vector_byte_for_byte(case: Dict[str, Any]) -> None:
    given = case["encode"]
    data = _protocol.encode(**given)
    assert data == case["datagram"].encode("utf-8")
    assert json.loads(data) == case["event"]


@pytest.mark.parametrize(
    "case", [case for case in encoded_cases() if "scalars" in case.values[0]["encode"]["fields"]]
)
def test_fast_scalars_are_the_same_text(case: Dict[str, Any]) -> None:
    values = case["encode"]["fields"]["scalars"]
    assert _protocol.scalars_fragment(values) == _protocol.fragment({"scalars": values})


def test_numbers_of_all_sorts_become_json_numbers_or_words() -> None:
    class FloatLike:
        def __float__(self) -> float:
            return 0.5

    class Broken:
        def __float__(self) -> float:
            raise RuntimeError("no")

    values = {
        "float": 0.1, "int": 3, "bool": True, "huge": 2**70, "beyond": 10**400, "below": -(10**400),
        "nan": float("nan"), "inf": float("inf"), "ninf": float("-inf"), "like": FloatLike(),
        "broken": Broken(), "text": "7", "none": None, "list": [1], "": 1,
    }  # fmt: skip
    assert _protocol.scalars(values) == {
        "float": 0.1, "int": 3, "bool": 1.0, "huge": float(2**70), "beyond": "Infinity",
        "below": "-Infinity", "nan": "NaN", "inf": "Infinity", "ninf": "-Infinity", "like": 0.5,
    }  # fmt: skip
    json.loads("{" + _protocol.scalars_fragment(_protocol.scalars(values))[1:] + "}")


def test_names_and_texts_keep_their_bounds_and_are_valid_utf8() -> None:
    assert _protocol.text("a\ud800b") == "a?b"
    assert len(_protocol.name("损" * 300).encode("utf-8")) <= 200
    assert len(_protocol.text("x" * 5000)) == 2000
    assert len(_protocol.scalars({str(i): i for i in range(300)})) == 256
