# SPDX-License-Identifier: Apache-2.0
"""The version of the client, the same as in pyproject.toml."""

VERSION = "0.1.0"
