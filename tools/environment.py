"""Set up the project's virtual environments: `environment.py KIND`, quick when nothing changed.

Standard library only, because it runs on the newcomer's own Python before anything is installed. What was installed is
remembered as a digest of the interpreter, the pinned requirement files and the packaging tables of the pyproject.toml
files; no pip runs while the digest stands. Which index pip asks is the user's configuration.
"""

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
WHEELS = BUILD / "wheels"
CALLERS = (Path("protos"), Path("clients/python"), Path("integrations/python"))
PROJECTS = (Path("protos"), Path("clients/python"), Path("clients/cli"), Path(), Path("integrations/python"))
SOURCES = (
    "server",
    "plugins",
    "clients/cli",
    "clients/python/nodewise_client",
    "integrations/python/nodewise_integrations",
    "protos/python",
    "protos/nodewise",
    "examples",
)
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Environment:
    """A virtual environment and what is put into it."""

    folder: str
    requirements: tuple[str, ...]
    editable: tuple[Path, ...] = ()
    wheels: bool = False
    satisfied_by: tuple[str, ...] = ()


ENVIRONMENTS = {
    "audit": Environment(".venv-audit", ("audit",)),
    "demo": Environment(".venv", ("demo",), editable=PROJECTS, satisfied_by=("dev", "test")),
    "dev": Environment(".venv", ("dev",), editable=PROJECTS, satisfied_by=("test",)),
    "frameworks": Environment(".venv-frameworks", ("frameworks",)),
    "fuzz": Environment(".venv-fuzz", ("dev", "fuzz"), editable=PROJECTS),
    "openapi": Environment(".venv-openapi", ("openapi",)),
    "peers": Environment(".venv-peers", ("peers",)),
    "ray": Environment(".venv-ray", ("ray",), editable=CALLERS),
    "skypilot": Environment(".venv-skypilot", ("skypilot",), editable=CALLERS),
    "test": Environment(".venv", ("dev", "oracles"), editable=PROJECTS),
    "torch": Environment(".venv-torch", ("dev", "torch"), editable=PROJECTS),
    "tools": Environment(".venv-tools", ("tools",)),
    "wheel": Environment(".venv-wheel", ("test", "build"), wheels=True),
}


def scripts(folder: Path) -> Path:
    """Return where an environment keeps its executables."""
    return folder / ("Scripts" if os.name == "nt" else "bin")


def check_interpreter() -> None:
    """Say what is missing, and how to get it, before anything is written."""
    if sys.version_info[:2] < OLDEST_PYTHON:
        raise SystemExit(
            f"Nodewise needs Python {'.'.join(map(str, OLDEST_PYTHON))} or newer; "
            f"{sys.executable} is {sys.version.split()[0]}. "
            "Name another one: make PYTHON=python3.12 ..."
        )
    try:
        import ensurepip  # noqa: F401, PLC0415 - Debian splits it off; whether it is there is the question
        import venv  # noqa: F401, PLC0415
    except ImportError:
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        raise SystemExit(f"{sys.executable} cannot make virtual environments: apt-get install {package}") from None


def packaging_tables(project: Path) -> str:
    """Return the part of a pyproject.toml that decides what an installation contains."""
    import tomllib  # noqa: PLC0415 - only here, after check_interpreter: older Pythons lack it

    document = tomllib.loads((ROOT / project / "pyproject.toml").read_text(encoding="utf-8"))
    relevant = {"build-system": document["build-system"], "project": document["project"]}
    relevant["hatch"] = document.get("tool", {}).get("hatch", {})
    return json.dumps(relevant, sort_keys=True)


def source_files() -> Iterator[Path]:
    """Yield every file that a wheel may contain, in a stable order."""
    for source in SOURCES:
        for path in sorted((ROOT / source).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def digest(kind: str) -> str:
    """Return what the environment of a kind depends on, as one digest."""
    environment = ENVIRONMENTS[kind]
    state = hashlib.sha256()
    state.update(repr((sys.version_info[:3], sys.base_prefix, str(ROOT))).encode())
    for name in environment.requirements:
        state.update((ROOT / "requirements" / f"{name}.txt").read_bytes())
    if environment.editable or environment.wheels:
        for project in environment.editable or PROJECTS:
            state.update(packaging_tables(project).encode())
    if environment.wheels:
        for path in source_files():
            state.update(str(path.relative_to(ROOT)).encode())
            state.update(path.read_bytes())
    return state.hexdigest()


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Let one process at a time work on an environment, so that two makes beside each other are safe."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / f"{folder.name}.lock").open("w") as lock:
        try:
            import fcntl  # noqa: PLC0415 - absent on Windows
        except ImportError:
            yield
            return
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def interpreter_of(folder: Path) -> str:
    """Return the version that an existing environment was made with, or nothing."""
    configuration = folder / "pyvenv.cfg"
    if not configuration.is_file():
        return ""
    for line in configuration.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "version":
            return value.strip()
    return ""


def run(*command: str | Path) -> None:
    """Run one command in the repository's root and stop with its exit status if it fails."""
    finished = subprocess.run([str(part) for part in command], cwd=ROOT, check=False)
    if finished.returncode:
        raise SystemExit(finished.returncode)


def build_wheels(python: Path) -> list[Path]:
    """Build the wheels of the distributions, each from its own source archive, without a network."""
    shutil.rmtree(WHEELS, ignore_errors=True)
    for project in PROJECTS:
        run(python, "-m", "build", "--no-isolation", "--outdir", WHEELS, ROOT / project)
    return sorted(WHEELS.glob("*.whl"))


def install(kind: str, folder: Path) -> None:
    """Bring an environment up to date."""
    environment = ENVIRONMENTS[kind]
    if interpreter_of(folder) != sys.version.split()[0]:
        run(sys.executable, "-m", "venv", "--clear", folder)
    pip = (scripts(folder) / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    chosen = [part for name in environment.requirements for part in ("-r", f"requirements/{name}.txt")]
    run(*pip, "--require-hashes", *chosen)
    if environment.editable:
        editables = [part for project in environment.editable for part in ("-e", str(ROOT / project))]
        run(*pip, "--no-deps", "--no-build-isolation", *editables)
    if environment.wheels:
        wheels = build_wheels(scripts(ROOT / ENVIRONMENTS["test"].folder) / "python")
        run(*pip, "--no-deps", "--no-index", "--force-reinstall", *wheels)
    if environment.editable or environment.wheels:
        run(scripts(folder) / "python", "-m", "pip", "check")


def ensure(kind: str) -> None:
    """Set an environment up unless what it depends on has not changed."""
    environment = ENVIRONMENTS[kind]
    folder = ROOT / environment.folder
    with only_one(folder):
        for candidate in (kind, *environment.satisfied_by):
            stamp = folder / f".installed-{candidate}"
            if stamp.is_file() and stamp.read_text(encoding="utf-8") == digest(candidate):
                return
        print(f"setting up {environment.folder} ({kind})", flush=True)
        install(kind, folder)
        (folder / f".installed-{kind}").write_text(digest(kind), encoding="utf-8")


def main() -> None:
    """Set up the environments that are named."""
    parser = argparse.ArgumentParser(description="Set up the project's virtual environments.")
    parser.add_argument("kinds", nargs="+", choices=sorted(ENVIRONMENTS))
    arguments = parser.parse_args()
    check_interpreter()
    for kind in arguments.kinds:
        ensure(kind)


if __name__ == "__main__":
    main()
