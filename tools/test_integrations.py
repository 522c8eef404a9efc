"""Build, lint and test the integrations with cluster managers by their ecosystems' ordinary commands.

    python tools/test_integrations.py                      # every one whose programs run here
    python tools/test_integrations.py --only kubernetes

What does not run on this machine is left out, and said. `integrations/*/integration.toml` has each one's commands,
which find the server's command in NODEWISE_COMMAND.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

from nodewise_conformance.programs import why_not_any

ROOT = Path(__file__).resolve().parents[1]
STEPS = ("build", "lint", "test")


def failed_step(folder: Path, steps: dict[str, list[list[str]]], title: str) -> str | None:
    """Run the steps of an integration; the first that fails, whose output is shown. None = all passed."""
    environment = {**os.environ, "NODEWISE_COMMAND": str(Path(sys.executable).parent / "nodewise")}
    for step in STEPS:
        begun = time.monotonic()
        for command in steps.get(step, []):
            finished = subprocess.run(
                command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
            )
            said = finished.stdout.decode(errors="replace")
            if finished.returncode:
                print(f"{said}\n{title}: {step} failed: {' '.join(command)} ended with {finished.returncode}")
                return step
            for line in said.splitlines():
                if line.startswith("skipped:"):
                    print(f"make test-integrations: {title}: {line}")
        if step in steps:
            print(f"{title:12} {step:8} {time.monotonic() - begun:6.1f} s", flush=True)
    return None


def main() -> int:
    """Run what the command line asks for; the exit status is 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="folder of integrations/; repeatable")
    chosen = parser.parse_args()
    failed = []
    for table in sorted((ROOT / "integrations").glob("*/integration.toml")):
        if chosen.only and table.parent.name not in chosen.only:
            continue
        integration = tomllib.loads(table.read_text())
        if why := why_not_any(integration["needs"], table.parent):
            print(f"make test-integrations: {integration['title']} is left out: {why}")
        elif step := failed_step(table.parent, integration["steps"], integration["title"]):
            failed.append(f"{integration['title']}: {step}")
    for each in failed:
        print(f"make test-integrations: failed: {each}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
