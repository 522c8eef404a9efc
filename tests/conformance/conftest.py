"""Example plugins are no part of what is installed for the tests: they are found where their distributions lie."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), *map(str, sorted(Path(__file__).parents[2].glob("examples/plugins/*")))]
