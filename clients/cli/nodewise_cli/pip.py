"""Running pip, to put a plugin and what it needs into a folder.

What the server's environment has is not installed again: pip says first what would be missing there, held to the
versions that are there, and then installs exactly that.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from nodewise_cli.failures import CommandError

__all__ = ["install_into"]

_TIMEOUT_S: Final = 1200.0
"""Of one run of pip, which may build a wheel."""
_SHOWN_LINES: Final = 12
"""Last lines of pip's output that are shown when it fails."""
_GROUP: Final = "nodewise.plugins"
_SERVER: Final = "nodewise"


def install_into(requirement: str, folder: Path, options: Sequence[str]) -> None:
    """Install a distribution into an empty folder.

    Parameters
    ----------
    requirement : str
        A requirement such as ``name==1.2``, a wheel, or the folder of a project.
    options : sequence of str
        For pip: where it looks.

    Raises
    ------
    CommandError
        pip cannot install it beside the server, or the server's environment has it already.
    """
    target = str(Path(requirement).resolve()) if Path(requirement).exists() else requirement
    with TemporaryDirectory() as scratch:
        constraints, report = Path(scratch, "constraints.txt"), Path(scratch, "report.json")
        constraints.write_text("\n".join(_constraints()))
        _run("--dry-run", "--report", str(report), "--constraint", str(constraints), *options, target)
        missing = json.loads(report.read_bytes())["install"]
        if not missing:
            raise CommandError(f"{requirement}: the server's environment already has this version")
        _run("--no-deps", "--no-compile", "--target", str(folder), *options, *map(_requirement, missing))


def _constraints() -> list[str]:
    """Versions of all that is installed, but plugins: of these, a folder may hold another version."""
    return sorted(
        f"{each.name}=={each.version}"
        for each in metadata.distributions()
        if each.name == _SERVER or not each.entry_points.select(group=_GROUP)
    )


def _requirement(entry: dict[str, Any]) -> str:
    """An entry of pip's report as a requirement that names exactly it."""
    source = entry["download_info"]
    sha256 = source.get("archive_info", {}).get("hashes", {}).get("sha256")
    return f"{entry['metadata']['name']} @ {source['url']}" + (f"#sha256={sha256}" if sha256 else "")


def _run(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    try:
        process = subprocess.run(  # noqa: S603  # ours
            [*command, *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise CommandError(f"pip did not end within {_TIMEOUT_S:g} s") from None
    if process.returncode:
        lines = (process.stderr or process.stdout).strip().splitlines()[-_SHOWN_LINES:]
        raise CommandError("pip could not install it: " + "\n".join(lines))
