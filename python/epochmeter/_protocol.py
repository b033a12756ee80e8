# SPDX-License-Identifier: Apache-2.0
"""Encodes events as docs/protocol.md says. Pure functions; the socket is in _sender.py."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional, Union

VERSION = 1
MAX_BYTES = 8192
MAX_MESSAGE = 2000
MAX_TRACEBACK = 4000
MAX_NAME_BYTES = 200
MAX_SCALARS = 256

Real = Union[int, float, str]

_dumps = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
# JSON text of names that come again at each step. Bounded: names may be made up at run time.
_quoted: Dict[str, str] = {}


def text(value: str, most: int = MAX_MESSAGE) -> str:
    """`value` cut to `most` characters, lone surrogates (not encodable in UTF-8) replaced."""
    value = value[:most]
    if value.isascii():
        return value
    return value.encode("utf-8", "replace").decode("utf-8")


def name(value: str) -> str:
    """A phase, mark or scalar name of at most 200 bytes."""
    short = text(value, MAX_NAME_BYTES)
    while len(short.encode("utf-8")) > MAX_NAME_BYTES:
        short = short[:-1]
    return short


def real(value: Any) -> Optional[Real]:
    """The protocol's form of a number: finite as it is, otherwise a word; None for no number."""
    if type(value) is not float:
        if type(value) is int and -(2**63) <= value < 2**63:
            return int(value)
        if isinstance(value, (str, bytes)):
            return None
        try:
            value = float(value)
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
        except Exception:
            return None
    if value - value == 0.0:
        return float(value)
    if value != value:
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def scalars(values: Mapping[str, Any]) -> Dict[str, Real]:
    """The entries that are numbers, at most 256 of them."""
    found: Dict[str, Real] = {}
    collect(found, values)
    return found


def collect(box: Dict[str, Real], values: Mapping[str, Any]) -> None:
    """Puts the entries that are numbers into `box`, which takes at most 256."""
    for key, value in values.items():
        if type(value) is not float or value - value != 0.0:
            value = real(value)
            if value is None:
                continue
        # A name that was quoted before had passed name().
        if key not in _quoted:
            key = name(str(key)) if key else ""
        if key and (len(box) < MAX_SCALARS or key in box):
            box[key] = value


def quote(value: str) -> str:
    """JSON string of a name, remembered."""
    known = _quoted.get(value)
    if known is None:
        known = _dumps(value)
        if len(_quoted) < 4096:
            _quoted[value] = known
    return known


def head(kind: str) -> str:
    """The beginning of every datagram of `kind`, up to the value of t_ns."""
    return f'{{"v":{VERSION},"kind":{quote(kind)},"t_ns":'


def fragment(fields: Mapping[str, Any]) -> str:
    """The fields as `,"name":value...`, those that are None left out; "" for none."""
    known = {key: value for key, value in fields.items() if value is not None}
    return "," + _dumps(known)[1:-1] if known else ""


def scalars_fragment(values: Mapping[str, Real]) -> str:
    """Same text as fragment({"scalars": values}), several times faster; values come from real()."""
    parts: List[str] = []
    for key, value in values.items():
        known = _quoted.get(key) or quote(key)
        parts.append(f"{known}:{value!r}" if type(value) is not str else f'{known}:"{value}"')
    return ',"scalars":{' + ",".join(parts) + "}"


def encode(
    kind: str,
    t_ns: int,
    pid: int,
    seq: int,
    dropped: int,
    rank: Optional[int],
    fields: Mapping[str, Any],
) -> bytes:
    """One datagram. The caller has made `fields` with text(), name(), real() and scalars()."""
    rank_part = "" if rank is None else f',"rank":{rank}'
    return (
        f'{head(kind)}{t_ns},"pid":{pid},"seq":{seq},"dropped":{dropped}{rank_part}'
        f"{fragment(fields)}}}"
    ).encode("ascii")
