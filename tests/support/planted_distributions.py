"""Distributions that are planted for servers of their own: a folder with metadata and a module for each fault."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import faulty_plugin
from faulty_plugin import ACTS, ANSWERS, HARMLESS

METHODS: Final = {
    "estimator": ("assess", "fit", "predict"),
    "policy": ("decide",),
    "reader": ("recognises", "read"),
    "diagnoser": ("replay", "diagnose"),
}
"""What may be at fault once a plugin is loaded, by kind."""
LOADING: Final = ("import", "hook")


@dataclass(frozen=True)
class Fault:
    """One distribution that is to be planted: a plugin of a kind, one method of which is at fault."""

    kind: str
    method: str
    fault: str

    @property
    def name(self) -> str:
        """Of the distribution and of its plugin."""
        return f"{self.kind}-{self.method}-{self.fault}"

    @property
    def loads(self) -> bool:
        """Whether the plugin is there in the end; one that is slow to load is."""
        return self.method not in (*LOADING, "api") or (self.method != "api" and self.fault in HARMLESS)

    @property
    def answers(self) -> bool:
        """Whether those who ask for it are served."""
        return self.method == "none" or (self.loads and self.fault in HARMLESS)


WELL: Final = Fault("estimator", "none", "none")
"""A third party's that is right: what stands beside it must not be felt."""


def matrix() -> list[Fault]:
    """Every fault in every method of every kind."""
    found = [
        Fault(kind, method, fault)
        for kind, methods in METHODS.items()
        for method in methods
        for fault in (*ACTS, *ANSWERS)
    ]
    found += [Fault(kind, method, fault) for kind in METHODS for method in LOADING for fault in ACTS]
    return found + [Fault(kind, "api", "none") for kind in METHODS]


def planted(site: Path, faults: Iterable[Fault]) -> dict[str, str]:
    """The environment of a process for which distributions with these faults are installed in a folder."""
    site.mkdir(parents=True, exist_ok=True)
    shutil.copy(faulty_plugin.__file__, site / "faulty_plugin.py")
    for fault in faults:
        module = f"planted_{fault.name.replace('-', '_')}"
        info = site / f"{fault.name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {fault.name}\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[nodewise.plugins]\n{fault.name} = {module}\n", encoding="utf-8")
        stated = f"{fault.name!r}, {fault.kind!r}, {fault.method!r}, {fault.fault!r}"
        (site / f"{module}.py").write_text(
            f"from faulty_plugin import hooks\n\nglobals().update(hooks({stated}))\n", encoding="utf-8"
        )
    return {"PYTHONPATH": os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])}
