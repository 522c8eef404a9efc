"""Measure what installations take on disk: `python tools/installed_sizes.py`.

Each set of wheels is installed by pip into a fresh environment, with the pins of `requirements/runtime.txt`. Sizes are
those of blocks on disk, bytecode and pip of the environment included, as `du` counts them. `without tests` is the
server's without the tests that packages ship, as the image has it; commands must run in it.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from environment import ROOT, WHEELS, build_wheels, run, scripts

SETS = {
    "client": "nodewise-client",
    "client with command line": "nodewise-cli",
    "server": "nodewise",
}
COMMANDS = (
    "predict testbed.csv --job a1 --workers 1-16",
    "plan plan_mlp_32_machines.json",
    "diagnose traces",
    "simulate simulation/simulate.json --repetitions 1",
    "spot spot.json",
    "share share.json",
    "backtest testbed.csv",
)
"""In the folder of examples."""
MEGABYTE = 1 << 20
LARGEST = 8


def megabytes(folder: Path) -> float:
    """Blocks of the files below a folder."""
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) * 512 / MEGABYTE


def pins() -> str:
    """Versions of `requirements/runtime.txt` without hashes, which pip would ask of the wheels here too."""
    text = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    return "".join(line.replace("\\", "\n") for line in text.splitlines() if re.match(r"[a-z].*==", line))


def install(folder: Path, distribution: str, constraints: Path) -> None:
    """A fresh environment with a distribution and what it needs."""
    run(sys.executable, "-m", "venv", folder)
    run(
        scripts(folder) / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--find-links",
        WHEELS,
        "--constraint",
        constraints,
        distribution,
    )


def tell(name: str, folder: Path) -> None:
    """One line: all of an environment, and its largest parts."""
    (packages,) = folder.glob("lib/python*/site-packages")
    parts = sorted(((megabytes(each), each.name) for each in packages.iterdir() if each.is_dir()), reverse=True)
    largest = ", ".join(f"{part} {size:.0f}" for size, part in parts[:LARGEST])
    print(f"{name}: {megabytes(folder):.0f} MB ({largest})", flush=True)


def main() -> None:
    """Build the wheels, install each set and print its size."""
    build_wheels(Path(sys.executable))
    with tempfile.TemporaryDirectory() as place:
        constraints = Path(place) / "constraints.txt"
        constraints.write_text(pins(), encoding="utf-8")
        for name, distribution in SETS.items():
            folder = Path(place) / distribution
            install(folder, distribution, constraints)
            tell(name, folder)
        server = Path(place) / SETS["server"]
        run("sh", ROOT / "deploy" / "without_tests.sh", server)
        for command in COMMANDS:
            words = [str(scripts(server) / "nodewise"), *command.split()]
            subprocess.run(words, check=True, cwd=ROOT / "examples", stdout=subprocess.DEVNULL)
        tell("server without tests", server)


if __name__ == "__main__":
    main()
