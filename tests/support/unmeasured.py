"""Processes whose lines coverage does not count: what they do is tested, and others run the same lines.

To be counted makes a process start a third later. Those are that are the subject of a test: supervisor, workers, hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

UNMEASURED: Final[Mapping[str, str]] = MappingProxyType({"COVERAGE_PROCESS_CONFIG": ""})
"""To be put above the environment of a child: coverage starts in no process that finds this empty."""
