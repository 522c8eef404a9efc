"""Run commands as where the command line is installed without the server: `command_line_alone.py COMMANDS.json`.

COMMANDS.json holds lists of words; standard output gets exit status, output and errors of each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ABSENT = ("matplotlib", "nodewise", "numba", "numpy", "pandas", "scipy", "structlog", "aiohttp")

if __name__ == "__main__":
    # As if they were not installed: the import system raises ModuleNotFoundError.
    sys.modules |= dict.fromkeys(ABSENT)  # type: ignore[arg-type]
    from typer.testing import CliRunner

    from nodewise_cli.app import app

    results = [CliRunner().invoke(app, words) for words in json.loads(Path(sys.argv[1]).read_text())]
    print(json.dumps([[each.exit_code, each.stdout, each.stderr or repr(each.exception)] for each in results]))
