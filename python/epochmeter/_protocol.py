# SPDX-License-Identifier: Apache-2.0
"""Encodes events as docs/protocol.md says. Pure functions; the socket is in _sender.py."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional, Tuple, Union

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


def collect_plain(box: Dict[str, Real], values: Mapping[str, Any]) -> bool:
    """As collect() for what is logged at each step: finite numbers under names that came before.

    False when it was not that; then collect() is to have all of `values`.
    """
    if len(box) + len(values) > MAX_SCALARS:
        return False
    for key, value in values.items():
        if type(value) is float:
            if value - value != 0.0:
                return False
        elif type(value) is not int or not -(2**63) <= value < 2**63:
            return False
        if key not in _quoted:
            return False
        box[key] = value
    return True


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
    parts = [
        f'{quote(key)}:"{value}"' if type(value) is str else f"{quote(key)}:{value!r}"
        for key, value in values.items()
    ]
    return ',"scalars":{' + ",".join(parts) + "}"


class StepForm:
    """The datagram of a step as most are, made once for many: only numbers are put into it.

    Those are, in this order, t_ns, step, step_in_epoch, duration and data wait in ns, one for each
    of `names`, and seq.
    """

    __slots__ = ("batch_size", "names", "dropped", "text", "_epoch")

    def __init__(self, epoch: Optional[int], batch_size: Optional[int], names: Tuple[str, ...]):
        self._epoch = epoch
        self.batch_size = batch_size
        self.names = names
        # The count in `text`.
        self.dropped = -1
        self.text = b""

    def fill(self, pid: int, dropped: int, rank_part: str) -> None:
        size = "" if self.batch_size is None else f',"batch_size":{self.batch_size}'
        reals = ",".join(quote(name).replace("%", "%%") + ":%a" for name in self.names)
        self.dropped = dropped
        # Nanoseconds with their exponent: the number that a division would give, made faster.
        self.text = (
            f'{head("step")}%d,"pid":{pid},"dropped":{dropped}{rank_part},"step":%d,'
            f'"epoch":{self._epoch},"step_in_epoch":%d,"duration_s":%de-9,"data_wait_s":%de-9{size}'
            + (f',"scalars":{{{reals}}}' if reals else "")
            + ',"seq":%d}'
        ).encode()


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
