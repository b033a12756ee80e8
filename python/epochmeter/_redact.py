# SPDX-License-Identifier: Apache-2.0
"""Takes out of an exception's text what should not leave the process: secrets, the home folder.

The same words make a name secret as in the recorder's own command lines. All patterns begin at a
literal or are bounded, so that a long text takes time in proportion.
"""

from __future__ import annotations

import functools
import os
import re
import traceback
from types import TracebackType
from typing import List, Optional, Pattern, Tuple

from epochmeter import _protocol

HIDDEN = "***"
# Read so much more than is kept, so that nothing secret is cut in two and then not known again.
READ_TIMES = 4

_NAMES = r"secret|passwo?r?d|api[-_]?key|credential|access[-_]?key"
# Vocabularies have tokens too: `tokens=512`, `tokenizer=...` and short values are theirs.
_TOKEN = r"token(?!s\b|iz)"
_BETWEEN = r"[\w-]{0,40}[\"']?\s{0,3}[=:]\s{0,3}"
_VALUE = r"[^\s\"',;&)}\]]"


def _value(least: int) -> str:
    """A value of so many characters, in quotes or up to what ends a word."""
    return rf"(?:\"[^\"]{{{least},200}}\"|'[^']{{{least},200}}'|[\"']?{_VALUE}{{{least},}})"


@functools.lru_cache(maxsize=None)
def _patterns() -> List[Tuple[Pattern[str], str]]:
    """Compiled when an exception comes, not at the start of the training."""
    made = (
        (rf"((?:{_NAMES}){_BETWEEN}){_value(1)}", r"\1" + HIDDEN),
        (rf"({_TOKEN}{_BETWEEN}){_value(8)}", r"\1" + HIDDEN),
        # --token VALUE on a command line
        (rf"(--[\w-]{{0,40}}(?:{_NAMES}|{_TOKEN})[\w-]{{0,40}}\s{{1,3}}){_value(1)}", r"\1" + HIDDEN),
        (r"(bearer\s{1,3})[\w.~+/=-]{8,}", r"\1" + HIDDEN),
        # user:password@ of a URL
        (r"(://)[^\s/?#\"']{1,200}@", r"\1" + HIDDEN + "@"),
        # Keys that are known by how they begin.
        (r"\b(?:hf_|gh[opsu]_|github_pat_|glpat-|sk-|xox[abp]-|AKIA|ASIA|eyJ)[\w.-]{16,}", HIDDEN),
    )
    return [(re.compile(pattern, re.IGNORECASE), to) for pattern, to in made]


def clean(text: str) -> str:
    """`text` without what looks like a secret, and with ~ for the home folder."""
    home = os.environ.get("HOME", "").rstrip("/")
    if len(home) > 1:
        text = re.sub(re.escape(home) + r"(?![\w.-])", "~", text)
    for pattern, to in _patterns():
        text = pattern.sub(to, text)
    return text


def message(error: Optional[BaseException]) -> str:
    """What an exception says, cleaned, as one line, and cut to what an event holds."""
    try:
        said = clean(str(error)[: READ_TIMES * _protocol.MAX_MESSAGE])
        lines = (line.strip() for line in said.splitlines())
        return _protocol.text(" / ".join(line for line in lines if line))
    except Exception as second:
        return f"({type(error).__name__}.__str__ failed: {type(second).__name__})"


def told(error: Optional[BaseException], trace: Optional[TracebackType]) -> Tuple[str, str]:
    """Message and tail of the traceback, which fit into one event together."""
    said = message(error)
    lines = "".join(traceback.format_tb(trace))
    lines = clean(lines[-READ_TIMES * _protocol.MAX_TRACEBACK :])
    tail = _protocol.text(lines[-_protocol.MAX_TRACEBACK :], _protocol.MAX_TRACEBACK)
    # Each character may take 12 bytes as escapes: the traceback gives way before the message.
    while len(_protocol.fragment({"m": said, "t": tail})) > _protocol.MAX_BYTES - 800:
        if tail:
            tail = tail[len(tail) // 2 + 1 :]
        else:
            said = said[: len(said) // 2]
    return said, tail
