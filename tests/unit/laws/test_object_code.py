"""Kernels that are kept as object files: the same answers, without numba from the second process on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numba.core import config
from numpy.typing import NDArray

from nodewise_laws.object_code import object_code

Numbers = NDArray[np.int64]

PROGRAM = """
import sys

import numpy as np
from nodewise_laws.object_code import object_code

@object_code
def weighed(columns, weights, factor, least):
    values, chosen = columns
    total = 0
    for place in range(len(values)):
        if values[place] >= least:
            chosen[place] = 1
            total += int(np.rint(weights[place, 1] * factor)) * values[place]
    return total, least

columns = np.arange(5), np.zeros(5, dtype=np.int64)
weights = np.arange(10.0).reshape(5, 2)
weights.flags.writeable = False
print(list(map(int, weighed(columns, weights, 0.5, np.int64(2)))), columns[1].tolist(), "numba" in sys.modules)
"""
ANSWER = "[32, 2] [0, 0, 1, 1, 1]"
"""2 * 2 + 3 * 4 + 4 * 4: halves of the weights 5, 7 and 9 are rounded to even."""


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """Where machine code is kept."""
    folder = tmp_path / "kept"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("NUMBA_CACHE_DIR", str(folder))
        environment.delenv("NUMBA_DISABLE_JIT", raising=False)
        yield folder
    config.reload_config()  # numba reads its environment when it compiles: what comes next would keep its code here


def answer(folder: Path) -> tuple[str, bool]:
    """What the program says in a process of its own, and whether numba was imported."""
    path = folder / "program.py"
    path.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    told, _, imported = done.stdout.strip().rpartition(" ")
    return told, imported == "True"


@pytest.mark.skipif(sys.platform != "linux", reason="code is kept on Linux")
def test_a_later_process_needs_no_numba_and_a_damaged_file_is_made_anew(tmp_path: Path, cache: Path) -> None:
    assert answer(tmp_path) == (ANSWER, True)
    assert answer(tmp_path) == (ANSWER, False)
    (kept,) = cache.glob("*.o")
    content = kept.read_bytes()
    kept.write_bytes(content[:-100] + bytes(100))
    assert answer(tmp_path) == (ANSWER, True)
    assert kept.read_bytes() == content


def test_plain_python_gives_the_same(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert answer(tmp_path)[0] == ANSWER
    assert not list(cache.glob("*.o"))


def test_another_type_than_that_of_the_first_call_is_refused(cache: Path) -> None:
    @object_code
    def last(values: Numbers) -> int:
        return int(values[len(values) - 1])

    assert last(np.array([3, 4])) == 4
    assert last(np.array([7])) == 7
    with pytest.raises(TypeError):
        last(np.array([3.0, 4.0]))


def test_what_cannot_be_kept_goes_through_numba(cache: Path) -> None:
    @object_code
    def half(value: float) -> float:
        return value / 2

    assert half(3.0) == 1.5
