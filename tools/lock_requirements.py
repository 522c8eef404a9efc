"""Pin every requirement set with hashes: requirements/*.in and the pyproject.toml files become requirements/*.txt.

Run by `make lock`. Existing pins stay unless a range excludes them or `--upgrade` is given. The files name no index, no
host and no path; which index answers is the user's configuration. Hashes cover the wheels of all platforms.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
# The server and the command line first: a manager's environment has all but them.
PROJECTS = tuple(
    ROOT / folder / "pyproject.toml"
    for folder in (".", "clients/cli", "protos", "clients/python", "integrations/python")
)
OLDEST_PYTHON = "3.11"


@dataclass(frozen=True)
class RequirementSet:
    """One pinned file: what goes into it and whose pins it shares."""

    name: str
    inputs: tuple[str, ...] = ()
    runtime: bool = False
    caller: bool = False
    """What a manager's environment has besides: the integrations and the client, without the server."""
    extras: tuple[str, ...] = ()
    """Of the projects; alone where neither `runtime` nor `caller` is set."""
    shares_pins_of: str | None = None
    by_name: bool = False
    """Only locked when it is named: what it needs is not on every index."""


EXTRAS = ("jwt", "mcp", "opentelemetry", "postgresql", "s3")
"""Of the server; an image takes them by name (deploy/Dockerfile)."""
# `dev` holds everything that shares one environment and is resolved first; the others are cut out of it.
SETS = (
    RequirementSet("dev", ("test", "build", "dev"), runtime=True, extras=(*EXTRAS, "plot")),
    RequirementSet("runtime", runtime=True, shares_pins_of="dev"),
    *(RequirementSet(extra, extras=(extra,), shares_pins_of="dev") for extra in EXTRAS),
    RequirementSet("build", ("build",), shares_pins_of="dev"),
    RequirementSet("demo", ("build",), runtime=True, extras=("plot",), shares_pins_of="dev"),
    RequirementSet("test", ("test",), runtime=True, extras=(*EXTRAS, "plot"), shares_pins_of="dev"),
    RequirementSet("oracles", ("oracles",), shares_pins_of="dev"),
    RequirementSet("tools", ("tools",)),
    RequirementSet("peers", ("peers",)),
    RequirementSet("openapi", ("openapi",)),
    RequirementSet("audit", ("audit",)),
    RequirementSet("ray", ("build",), caller=True, extras=("ray", "optuna")),
    RequirementSet("skypilot", ("build",), caller=True, extras=("skypilot",)),
    RequirementSet("frameworks", ("frameworks",), by_name=True),
    RequirementSet("fuzz", ("fuzz",), shares_pins_of="dev", by_name=True),
    RequirementSet("torch", ("torch",), shares_pins_of="dev", by_name=True),
)


def distribution(requirement: str) -> str:
    """Return the normalised distribution name of a requirement."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    if match is None:
        raise SystemExit(f"no distribution name in requirement {requirement!r}")
    return re.sub(r"[-_.]+", "-", match.group()).lower()


def declared(chosen: RequirementSet) -> list[str]:
    """Return what the pyproject.toml files depend on, our own distributions left out."""
    projects = PROJECTS[2:] if chosen.caller else PROJECTS if chosen.runtime or chosen.extras else ()
    tables = [tomllib.loads(path.read_text(encoding="utf-8"))["project"] for path in projects]
    ours = {distribution(table["name"]) for table in tables}
    found: list[str] = []
    for table in tables:
        if chosen.runtime or chosen.caller:
            found += table.get("dependencies", [])
        for extra in chosen.extras:
            found += table.get("optional-dependencies", {}).get(extra, [])
    return sorted({requirement for requirement in found if distribution(requirement) not in ours})


def lock(chosen: RequirementSet, *, upgrade: bool) -> None:
    """Resolve one set and write its pinned file."""
    lines = declared(chosen)
    for name in chosen.inputs:
        lines += (REQUIREMENTS / f"{name}.in").read_text(encoding="utf-8").splitlines()
    output = REQUIREMENTS / f"{chosen.name}.txt"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{chosen.name}.in"
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "uv", "pip", "compile", str(source), "--output-file", str(output), "--quiet"]
        command += ["--universal", "--python-version", OLDEST_PYTHON, "--generate-hashes"]
        # One version for all Pythons, so that types, warnings and figures are the same on each.
        command += ["--fork-strategy", "fewest"]
        command += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
        if chosen.shares_pins_of is not None:
            command += ["--constraints", str(REQUIREMENTS / f"{chosen.shares_pins_of}.txt")]
        if upgrade:
            command.append("--upgrade")
        subprocess.run(command, check=True, cwd=ROOT)
    print(f"{output.relative_to(ROOT)}: {output.read_text(encoding='utf-8').count('==')} pins")


def main() -> None:
    """Lock the sets that are asked for, all of them by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "sets",
        nargs="*",
        choices=[[], *(chosen.name for chosen in SETS)],
        help="default: all that need no index of their own",
    )
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that the ranges admit")
    arguments = parser.parse_args()
    for chosen in SETS:
        if chosen.name in arguments.sets or not (arguments.sets or chosen.by_name):
            lock(chosen, upgrade=arguments.upgrade)


if __name__ == "__main__":
    main()
