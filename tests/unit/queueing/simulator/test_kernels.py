"""Compiled kernels: what is kept on disk, what happens when it is damaged, and who must not pay for numba."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from patience import PATIENCE_S

from nodewise_laws.kernels import Kernel, kernel

SOURCE = """
from nodewise_laws.kernels import kernel

FACTOR = 2.0

@kernel
def scaled(value):
    return FACTOR * value

@kernel
def total(values):
    \"\"\"Add up.\"\"\"
    found = 0.0
    for value in values:
        found += scaled(value)
    return found
"""


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernels_of_a_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / "kernels_of_a_test.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def kept(source: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (source.parent / "__pycache__").glob("*.nb*")}


def test_machine_code_is_kept_and_read(source: Path) -> None:
    first = load(source).total
    assert first(np.array([1.0, 2.5])) == 7.0
    assert first.__doc__ == "Add up."
    files = kept(source)
    assert len(files) == 2  # an index, and one signature; kernels that are called are within
    assert load(source).total(np.array([1.0, 2.5])) == 7.0
    assert kept(source) == files


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", [b"", b"damaged", b"\x80\x04."])
def test_what_is_damaged_is_made_anew(source: Path, suffix: str, damage: bytes) -> None:
    assert load(source).total(np.array([1.0])) == 2.0
    (damaged,) = (source.parent / "__pycache__").glob(f"*{suffix}")
    damaged.write_bytes(damage)
    assert load(source).total(np.array([1.0])) == 2.0
    assert kept(source)[damaged.name] != damage


@pytest.mark.parametrize(
    ("old", "new", "expected"), [("FACTOR = 2.0", "FACTOR = 3.0", 3.0), ("* value", "+ value", 3.0)]
)
def test_machine_code_of_another_source_is_not_used(source: Path, old: str, new: str, expected: float) -> None:
    """Also where only a constant or a kernel that is called has changed."""
    assert load(source).total(np.array([1.0])) == 2.0
    source.write_text(SOURCE.replace(old, new), encoding="utf-8")
    assert load(source).total(np.array([1.0])) == expected


def test_where_nothing_can_be_kept_kernels_work() -> None:
    namespace: dict[str, Kernel[..., float]] = {}
    # Of a function without a file numba can keep nothing, as of one whose directories are all read-only.
    exec(SOURCE, namespace)
    assert namespace["total"](np.array([1.0, 2.5])) == 7.0


def test_arguments_of_other_types_are_a_mistake(source: Path) -> None:
    total = load(source).total
    total(np.array([1.0]))
    with pytest.raises(TypeError):
        total(np.array([1], dtype=np.int32))


def test_arrays_are_given_back(source: Path) -> None:
    values = np.ones(3)
    before = sys.getrefcount(values)
    total = load(source).total
    for _ in range(3):
        total(values)
    assert sys.getrefcount(values) == before


def test_a_mistake_in_a_kernel_is_reported() -> None:
    @kernel
    def unknown(value: float) -> float:
        return value.no_such_method()  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(Exception, match="no_such_method"):
        unknown(1.0)


def test_long_recursions_alone_load_machine_code() -> None:
    program = """
import sys
import nodewise_queueing.plugin, nodewise_queueing.simulator
from nodewise_laws import exact_mva
exact_mva((0.1, 0.2, 0.3), 0.5, 32)
assert "llvmlite" not in sys.modules
exact_mva((0.1, 0.2, 0.3), 0.5, 1024)
assert "llvmlite" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE_S)
