"""The baselines are no part of what is installed for the tests: they are found where their distribution lies."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DISTRIBUTION = HERE.parents[2] / "examples" / "plugins" / "nodewise_baselines"

for folder in (HERE, DISTRIBUTION):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
