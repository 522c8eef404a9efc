"""Lint and tests of what a change touches, in under a minute: `make check`.

The change is what differs from where the branch left `main`, the working tree and new files included. Changed files
are linted by ruff; mypy (from its cache: the first run takes a minute or two longer) and import-linter look at all
there is, beside the tests. Tests are those that import what changed, nearest first (tools/import_graph.py), as many as
fit: how long a file takes is remembered in build/check. What was left out is named, and `make test` runs it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from import_graph import ImportGraph, expected_s, fitting, is_test, ranked

ROOT: Final = Path(__file__).resolve().parent.parent
BIN: Final = Path(sys.executable).parent
RECORD: Final = ROOT / "build" / "check"
BUDGET_S: Final = 45.0
GRACE_S: Final = 3.0
"""How long after the budget a test that has begun may still take."""
ROUNDS: Final = 4
MOST_NAMED: Final = 12


def git(*arguments: str) -> list[str]:
    """Lines that git prints."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def merge_base(branch: str) -> str:
    """Where this branch left another; the last commit where that one is not known."""
    for name in (branch, f"origin/{branch}"):
        asked = ["git", "merge-base", name, "HEAD"]
        found = subprocess.run(asked, cwd=ROOT, check=False, capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.strip()
    return "HEAD"


def changed_since(base: str) -> list[str]:
    """Paths that differ from a commit, those that are gone and new ones included."""
    return sorted(
        {*git("diff", "--name-only", "--no-renames", base), *git("ls-files", "--others", "--exclude-standard")}
    )


def declared_names() -> dict[str, str]:
    """Modules behind the names of commands and plugins in the tables of the packages."""
    found: dict[str, str] = {}
    for table in (ROOT / "pyproject.toml", *sorted(ROOT.glob("examples/plugins/*/pyproject.toml"))):
        project = tomllib.loads(table.read_text(encoding="utf-8")).get("project", {})
        for group in (project.get("scripts", {}), *project.get("entry-points", {}).values()):
            found |= {name: str(module).partition(":")[0] for name, module in group.items()}
    return found


@dataclass
class Lint:
    """A checker that runs beside the tests."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[str] = field(init=False)

    def start(self) -> None:
        """Begin."""
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def passed(self) -> bool:
        """Wait for the end, and show what was said if it was not good."""
        said, _ = self.process.communicate()
        good = self.process.returncode == 0
        print(f"{self.name}: {'good' if good else 'failed'}", flush=True)
        if not good:
            print(said, flush=True)
        return good


def lints(changed: Sequence[str], typed: Sequence[str]) -> list[Lint]:
    """What looks at the files without running them."""
    python = [path for path in changed if path.endswith(".py") and (ROOT / path).is_file()]
    found = []
    if python:
        found.append(Lint("ruff", [str(BIN / "ruff"), "check", "--force-exclude", *python]))
        found.append(Lint("ruff format", [str(BIN / "ruff"), "format", "--check", "--force-exclude", *python]))
    if any(path.endswith(".py") for path in changed) or {"pyproject.toml", "importlinter.toml"} & set(changed):
        found.append(Lint("mypy", [str(BIN / "mypy"), *typed]))
        found.append(Lint("import-linter", [str(BIN / "lint-imports"), "--config", "importlinter.toml"]))
    if any(path.startswith("protos/nodewise/") for path in changed):
        subprocess.run([sys.executable, "tools/third_party_protos.py"], cwd=ROOT, check=True)
        found.append(Lint("buf lint", [str(BIN / "buf"), "lint"]))
    return found


def known_seconds() -> dict[str, float]:
    """Seconds of test files, as timed here before."""
    record = RECORD / "seconds.json"
    return json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}


def run_tests(tests: Sequence[str], until: float) -> tuple[bool, list[str]]:
    """Run files of tests until a time of the monotonic clock: whether all passed, and the files that were cut."""
    outcome = RECORD / "outcome.json"
    outcome.parent.mkdir(parents=True, exist_ok=True)
    outcome.unlink(missing_ok=True)
    variables = {
        "PYTHONPATH": str(ROOT / "tools"),
        "NODEWISE_CHECK_UNTIL": str(until),
        "NODEWISE_CHECK_RECORD": str(RECORD),
        # Parallelism inside a test only takes from the linters that run beside it.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-p", "check_plugin", "-p", "no:cacheprovider", "-q", *tests]
    running = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **variables})
    try:
        running.wait(max(0.0, until - time.monotonic()) + GRACE_S)
    except subprocess.TimeoutExpired:
        # As Ctrl-C does: fixtures end the processes that they started, and the times are written.
        running.send_signal(signal.SIGINT)
        running.wait()
    if not outcome.is_file():
        return False, list(tests)
    said = json.loads(outcome.read_text(encoding="utf-8"))
    return said["failed"] == 0, said["cut"]


def main() -> int:
    """Check the change."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", default="main", help="the branch that the change is compared with")
    parser.add_argument("--budget-s", type=float, default=BUDGET_S, help="seconds for all of it")
    parser.add_argument("--list", action="store_true", help="name the tests that the change touches, and run nothing")
    parser.add_argument("typed", nargs="*", default=["server/nodewise", "plugins", "tools"], help="what mypy looks at")
    asked = parser.parse_args()
    started = time.monotonic()
    until = started + asked.budget_s
    changed = changed_since(merge_base(asked.base))
    if not changed:
        print(f"nothing differs from {asked.base}")
        return 0
    running = [] if asked.list else lints(changed, asked.typed)
    for lint in running:
        lint.start()
    tracked = git("ls-files", "--cached", "--others", "--exclude-standard")
    folders = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("examples/plugins/*/")) if path.is_dir()]
    graph = ImportGraph.of(ROOT, {*tracked, *changed}, names=declared_names(), folders=folders)
    distances = {path: far for path, far in graph.distances(changed).items() if (ROOT / path).is_file()}
    left = ranked(distances, known_seconds())
    if asked.list:
        for path in left:
            print(f"{distances[path]} {path}")
        return 0
    reached = len(left)
    print(f"{len(changed)} changed files, {reached} files of tests within their reach", flush=True)
    good = True
    for _ in range(ROUNDS):
        chosen = fitting(left, known_seconds(), until - time.monotonic())
        if not chosen or not good:
            break
        good, cut = run_tests(chosen, until)
        left = [path for path in left if path not in chosen or path in cut]
        if cut:
            break
    # Each is waited for, so that none is left running.
    verdicts = [lint.passed() for lint in running]
    tell(changed, left, distances, reached)
    print(f"{time.monotonic() - started:.0f} s")
    return 0 if good and all(verdicts) else 1


def tell(changed: Sequence[str], left: Sequence[str], distances: dict[str, int], reached: int) -> None:
    """Say what was left out."""
    print(f"{reached - len(left)} of {reached} files of tests ran whole")
    if left:
        seconds = known_seconds()
        print("left out, `make test` runs them:")
        for path in left[:MOST_NAMED]:
            print(f"  {path} ({distances[path]} imports away, about {expected_s(path, seconds):.0f} s)")
        if len(left) > MOST_NAMED:
            print(f"  and {len(left) - MOST_NAMED} more: `python tools/check_change.py --list` names all")
    unseen = [path for path in changed if not path.endswith(".py") and not is_test(path)]
    if unseen:
        print(f"no Python, so that only tests which name them ran: {', '.join(unseen[:MOST_NAMED])}")


if __name__ == "__main__":
    sys.exit(main())
