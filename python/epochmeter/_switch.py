# SPDX-License-Identifier: Apache-2.0
"""The one switch: EPOCHMETER=0|off|false|no turns everything off."""

from __future__ import annotations

import os
from typing import Mapping, Optional

from epochmeter._quiet import say_once

ON = ("1", "on", "true", "yes")
OFF = ("0", "off", "false", "no")


def enabled(environment: Optional[Mapping[str, str]] = None) -> bool:
    """Whether we may act. Unset and empty mean yes; an unknown word is said once and means no."""
    text = (os.environ if environment is None else environment).get("EPOCHMETER", "")
    word = text.strip().lower()
    if not word or word in ON:
        return True
    if word not in OFF:
        say_once(
            "switch",
            f"EPOCHMETER={text!r} is not understood; allowed are {', '.join(ON)} and "
            f"{', '.join(OFF)}. Recording stays off.",
        )
    return False
