"""Installing plugins into folders of their own, one for each version, by the pip of the server's environment.

Two versions of one distribution never share a folder, nor do two distributions: what each needs besides lies beside it.
What the server itself brings is not installed again: pip is first asked what would be missing from the server's own
environment, held to the versions that are there, and then installs exactly that.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from nodewise.plugin import ENTRY_POINT_GROUP
from nodewise.runtime.generations.discovery import registering
from nodewise.runtime.generations.folder import PluginsFolder, PluginsFolderError
from nodewise.runtime.generations.manifest import Generation, Installed, State

__all__ = ["PipOptions", "installed", "newest", "removed"]

PIP_S: Final = 1200.0
"""Patience with one run of pip, which may build a wheel."""
_TOLD_LINES: Final = 12
"""Last lines of what pip said that are told on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipOptions:
    """Where pip looks.

    Attributes
    ----------
    index_url : str
        "" = as pip is configured.
    find_links : tuple of str
        Folders or pages with wheels.
    no_index : bool
        Look nowhere else.
    no_build_isolation : bool
        Build with what is installed, for machines without a network.
    """

    index_url: str = ""
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    no_build_isolation: bool = False

    @property
    def arguments(self) -> list[str]:
        """For pip's command line."""
        return [
            *(["--index-url", self.index_url] if self.index_url else []),
            *(part for link in self.find_links for part in ("--find-links", link)),
            *(["--no-index"] if self.no_index else []),
            *(["--no-build-isolation"] if self.no_build_isolation else []),
        ]


def installed(folder: PluginsFolder, wanted: Sequence[str], options: PipOptions) -> Generation:
    """A new generation with other or more distributions; the next reload tries it and lets it take over.

    Parameters
    ----------
    wanted : sequence of str
        Requirements such as ``name==1.2``, wheels, or folders of projects.

    Raises
    ------
    PluginsFolderError
        pip could not install one, or it brings no plugin.
    """
    if not wanted:
        raise PluginsFolderError("name at least one distribution, such as my-plugin==1.2, a wheel or a folder")
    added = [_installed(folder, each, options) for each in wanted]
    before = folder.generation(newest(folder.state())).distributions
    names = {each.name for each in added}
    together = (*(each for each in before if each.name not in names), *added)
    return _next(folder, f"installed {', '.join(f'{each.name} {each.version}' for each in added)}", together)


def removed(folder: PluginsFolder, names: Sequence[str]) -> Generation:
    """A new generation without some distributions; raises PluginsFolderError for one that the newest has not."""
    before = folder.generation(newest(folder.state())).distributions
    unwanted = {str(canonicalize_name(name)) for name in names}
    unknown = unwanted - {each.name for each in before}
    if unknown or not unwanted:
        known = ", ".join(each.name for each in before) or "none"
        raise PluginsFolderError(f"not in the newest generation: {', '.join(sorted(unknown))}; there are: {known}")
    kept = tuple(each for each in before if each.name not in unwanted)
    return _next(folder, f"removed {', '.join(sorted(unwanted))}", kept)


def newest(state: State) -> int:
    """The generation that the next one is made from: what waits for a reload, else what serves."""
    return state.candidate or state.stable


def _next(folder: PluginsFolder, why: str, distributions: tuple[Installed, ...]) -> Generation:
    catalogue = folder.catalogue_of(folder.generation(newest(folder.state())))
    made = folder.add(why, distributions, catalogue.read_bytes() if catalogue is not None else b"")
    folder.change(lambda now: replace(now, candidate=made.number))
    return made


def _installed(folder: PluginsFolder, wanted: str, options: PipOptions) -> Installed:
    with TemporaryDirectory() as scratch, folder.new_folder() as made:
        missing = _missing(wanted, options, Path(scratch))
        _pip("install", "--quiet", "--no-deps", "--no-compile", "--target", str(made), *options.arguments, *missing)
        bringing = registering(made)
        if len(bringing) != 1:
            names = ", ".join(sorted(each.name for each in bringing)) or "none"
            raise PluginsFolderError(
                f"{wanted}: must bring one distribution with entry points of the group {ENTRY_POINT_GROUP!r}, "
                f"found {names}"
            )
        name, version = str(canonicalize_name(bringing[0].name)), bringing[0].version
        return folder.complete(made, name, version, _digest(made))


def _missing(wanted: str, options: PipOptions, scratch: Path) -> list[str]:
    """What pip would have to install, the wanted distribution first, each as something that it takes."""
    if _is_path(wanted):
        wanted = str(Path(wanted).resolve())
    own = _name_of(wanted)
    constraints = scratch / "constraints.txt"
    kept = sorted(
        {
            f"{canonicalize_name(each.name)}=={each.version}"
            for each in metadata.distributions()
            if canonicalize_name(each.name) != own
        }
    )
    constraints.write_text("\n".join(kept))
    report = scratch / "report.json"
    asked = ["--dry-run", "--quiet", "--report", str(report), "--constraint", str(constraints)]
    _pip("install", *asked, *options.arguments, wanted)
    entries = orjson.loads(report.read_bytes())["install"]
    if not entries:
        raise PluginsFolderError(f"{wanted}: is installed in the server's own environment, in this version, already")
    return [_taken(entry) for entry in entries]


def _taken(entry: dict[str, Any]) -> str:
    """An entry of pip's report as a requirement that names exactly it."""
    url = entry["download_info"]["url"]
    hashes = entry["download_info"].get("archive_info", {}).get("hashes", {})
    fixed = f"#sha256={hashes['sha256']}" if "sha256" in hashes else ""
    return f"{entry['metadata']['name']} @ {url}{fixed}"


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", *arguments, "--disable-pip-version-check", "--no-input"]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=PIP_S, check=False)  # noqa: S603  # ours
    except subprocess.TimeoutExpired:
        raise PluginsFolderError(f"pip did not end within {PIP_S:g} s") from None
    if finished.returncode:
        told = "\n".join((finished.stderr or finished.stdout).strip().splitlines()[-_TOLD_LINES:])
        raise PluginsFolderError(f"pip could not install it: {told}")


def _is_path(wanted: str) -> bool:
    return Path(wanted).exists() and ("/" in wanted or wanted.endswith((".whl", ".tar.gz")) or Path(wanted).is_dir())


def _name_of(wanted: str) -> str:
    """The canonical name of what is wanted; "" = only pip can tell."""
    path = Path(wanted)
    if path.suffix == ".whl":
        return str(canonicalize_name(path.name.split("-", 1)[0]))
    if path.exists():
        project = path / "pyproject.toml"
        named = re.search(r'^name\s*=\s*"([^"]+)"', project.read_text(), re.MULTILINE) if project.is_file() else None
        return "" if named is None else str(canonicalize_name(named[1]))
    try:
        return str(canonicalize_name(Requirement(wanted).name))
    except InvalidRequirement as error:
        raise PluginsFolderError(
            f"{wanted!r}: is neither a requirement such as my-plugin==1.2 nor a path: {error}"
        ) from None


def _digest(folder: Path) -> str:
    """Of the files of a folder, but for what tells where they came from."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name in {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}:
            continue
        digest.update(f"{path.relative_to(folder)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
