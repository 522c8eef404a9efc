"""Build, lint and test the clients of all languages by their ecosystems' ordinary commands, then their conformance.

    python tools/test_clients.py                    # every language whose toolchain runs here
    python tools/test_clients.py --only go --only java
    python tools/test_clients.py --no-conformance

What does not run on this machine is left out, and said. `clients/*/client.toml` has each language's commands.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from nodewise_conformance.languages import STEPS, Language, TableError, read_languages
from nodewise_conformance.programs import why_not_any
from nodewise_conformance.servers import NODEWISE, RealServer

RESTARTS = 2
"""Under load: one of workers one by one, one of all at once. `make conformance RESTARTS=100` is the long form."""
SWAPS = 3
"""Of an estimator in Go, under load."""
LANES = 2
"""Languages at work beside each other: much of a build keeps one core."""
SERVED = frozenset({"test", "example"})
"""Steps beside which a real server runs."""


def run_step(language: Language, step: str, server: RealServer | None) -> bool:
    """Whether all commands of a step ended with 0; what a failed one printed is shown."""
    environment = {**os.environ, "NODEWISE_COMMAND": NODEWISE}
    if server is not None:
        environment |= {"NODEWISE_SERVER": server.target, "NODEWISE_HTTP_SERVER": server.http_target}
    for command in language.steps[step]:
        finished = subprocess.run(
            command, cwd=language.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        if finished.returncode:
            said = finished.stdout.decode(errors="replace")
            why = f"{language.title}: {step} failed: {' '.join(command)} ended with {finished.returncode}"
            print(f"{said}\n{why}", flush=True)
            return False
    return True


def run_language(language: Language, steps: Sequence[str]) -> list[str]:
    """Run the steps of a language until one fails; returns what failed."""
    with contextlib.ExitStack() as stack:
        server: RealServer | None = None
        for step in language.steps:
            if step not in steps:
                continue
            if step in SERVED and server is None:
                server = stack.enter_context(RealServer())
            begun = time.monotonic()
            if not run_step(language, step, server if step in SERVED else None):
                return [f"{language.title}: {step}"]
            print(f"{language.title:12} {step:8} {time.monotonic() - begun:6.1f} s", flush=True)
    return []


def main() -> int:
    """Run what the command line asks for; the exit status is 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="LANGUAGE", help="folder of clients/; repeatable")
    parser.add_argument("--no-conformance", action="store_true")
    parser.add_argument("--only-build", action="store_true", help="what the conformance needs, and no more")
    chosen = parser.parse_args()
    try:
        languages = read_languages()
    except TableError as error:
        raise SystemExit(str(error)) from None
    wanted = [each for each in languages if not chosen.only or each.name in chosen.only]
    failed: list[str] = []
    able: list[Language] = []
    for language in wanted:
        if why := why_not_any(language.needs, language.folder):
            print(f"make test-clients: {language.title} is left out: {why}", flush=True)
        elif language.steps:
            able.append(language)
    steps = ("build",) if chosen.only_build else STEPS
    with ThreadPoolExecutor(LANES) as lanes:
        # The last first: those with compilers that take long come late in the alphabet, and would else end alone.
        for told in lanes.map(lambda language: run_language(language, steps), able[::-1]):
            failed += told
    if not (chosen.no_conformance or chosen.only_build):
        only = [word for each in chosen.only or () for word in ("--only", each)]
        parts = [["--planted", "--brief", "--built"], ["--restarts", str(RESTARTS)]]
        if shutil.which("go"):
            parts.append(["--swaps", str(SWAPS)])
        for part in parts:
            command = [sys.executable, "-m", "nodewise_conformance", *only, *part]
            begun = time.monotonic()
            if subprocess.run(command, check=False).returncode:
                failed.append(f"conformance {' '.join(part)}")
            print(f"{'conformance':12} {part[0].lstrip('-'):8} {time.monotonic() - begun:6.1f} s", flush=True)
    for each in failed:
        print(f"make test-clients: failed: {each}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
