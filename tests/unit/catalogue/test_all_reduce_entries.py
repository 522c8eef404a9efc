"""From what nccl-tests and a profiler print to entries that the catalogue reads."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parameter_server_tables import table_path

from nodewise.catalogue.loading import load_catalogue

TOOL: Any = runpy.run_path(str(Path(__file__).resolve().parents[3] / "tools" / "all_reduce_entries.py"))
MIB = 2.0**20

NCCL_TESTS = """\
# nThread 1 nGpus 4 minBytes 1048576 maxBytes 268435456 step: 16(factor) warmup iters: 5 iters: 20 agg iters: 1
#
# Using devices
#  Rank  0 Group  0 Pid   4242 on     node-7 device  0 [0x07] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid   4242 on     node-7 device  1 [0x0b] NVIDIA A100-SXM4-80GB
#  Rank  2 Group  0 Pid   4242 on     node-7 device  2 [0x48] NVIDIA A100-SXM4-80GB
#  Rank  3 Group  0 Pid   4242 on     node-7 device  3 [0x4c] NVIDIA A100-SXM4-80GB
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           0             0     float     sum      -1     0.11    0.00    0.00      0     0.11    0.00    0.00      0
     1048576        262144     float     sum      -1    51.40   20.40   30.60      0    52.74   19.88   29.82      0
    16777216       4194304     float     sum      -1    179.6   93.41  140.12      0    180.2   93.10  139.65      0
   268435456      67108864     float     sum      -1   1929.0  139.16  208.74      0   1930.1  139.08  208.62      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 126.5
#
"""
OLDER = NCCL_TESTS.replace("   redop    root  ", "   redop  ").replace("     sum      -1 ", "     sum ")
VTRAIN = """\
size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)
1048576,262144,float,51400,30.60,52740,29.82
2097152,524288,float,55740,56.44,55940,56.23
4194304,1048576,float,77300,81.39,77300,81.39
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "table.txt"
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", [NCCL_TESTS, OLDER], ids=["root", "no root"])
def test_what_nccl_tests_print(tmp_path: Path, text: str) -> None:
    found = TOOL["read"](written(tmp_path, text))
    assert found.ranks == 4
    assert found.sizes_bytes == (MIB, 16.0 * MIB, 256.0 * MIB)
    np.testing.assert_allclose(found.seconds, [51.4e-6, 179.6e-6, 1929e-6])


def test_tables_with_two_columns_of_one_name(tmp_path: Path) -> None:
    found = TOOL["read"](written(tmp_path, VTRAIN))
    assert found.ranks == 4
    np.testing.assert_allclose(found.seconds, [51.4e-6, 55.74e-6, 77.3e-6])


def test_entries_are_read_by_the_catalogue(tmp_path: Path) -> None:
    source = 'nccl-tests 2.13, rack "7"'
    arguments = [str(written(tmp_path, NCCL_TESTS)), "--device", "A100-80GB", "--source", source]
    (text,) = TOOL["main"](arguments)
    own = tmp_path / "own.toml"
    own.write_text(text)
    table = load_catalogue(own).all_reduces["a100sxm480gb"][4]
    assert table.source == source
    assert table.sizes == (MIB, 16.0 * MIB, 256.0 * MIB)


@pytest.mark.data
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_published_tables_are_thinned_and_stay_close(ranks: int) -> None:
    path = table_path(f"vtrain_a100_allreduce_gpu{ranks}.csv", "allreduce")
    whole = TOOL["read"](path)
    assert whole.ranks == ranks
    few = TOOL["thinned"](whole, 32)
    assert len(few.seconds) <= 32
    assert (few.sizes_bytes[0], few.sizes_bytes[-1]) == (MIB, 1024.0 * MIB)
    between = np.interp(np.log(whole.sizes_bytes), np.log(few.sizes_bytes), np.log(few.seconds))
    assert np.mean(np.abs(between - np.log(whole.seconds))) < 0.02


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NCCL_TESTS.replace("#  Rank  3", "#  Bank  3"), "lists 3 ranks, but its bus bandwidths are those of 4"),
        (NCCL_TESTS.replace("208.74", "104.37"), "which has 2 (n - 1) / n"),
        (NCCL_TESTS.replace("179.6   93.41", "N/A"), "table.txt:14: must be a row of all_reduce_perf"),
        (VTRAIN.replace("2097152", "1048576"), "must hold at least 2 sizes of an all-reduce, each once, found 3"),
        (VTRAIN.replace("55740", "soon"), "table.txt:3: must be size, count, type, time in ns"),
        ("nothing", "must hold at least 2 sizes"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
    with pytest.raises(SystemExit):
        TOOL["main"]([str(written(tmp_path, text)), "--link", "NVLink3", "--source", "s"])
    assert said in capsys.readouterr().err
