"""Import of layer tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodewise_client import ImportedModelError, Layer, layers_from_csv

HEADER = "name,kind,forward_flops_per_sample,parameter_bytes,activation_bytes_per_sample"


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "layers.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_layers_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        f"\ufeff{HEADER},halo_bytes_per_sample\nconv1,convolution,1.2e9,36864,802816,7168\n\nfc,dense,2e6,4e6,4000,\npool,pooling,0,0,4000,0\n",
    )
    assert layers_from_csv(path) == (
        Layer(
            name="conv1", kind="convolution", forward_flops_per_sample=1.2e9, parameter_bytes=36864,
            activation_bytes_per_sample=802816.0, halo_bytes_per_sample=7168.0,
        ),
        Layer(
            name="fc", kind="dense", forward_flops_per_sample=2e6, parameter_bytes=4_000_000,
            activation_bytes_per_sample=4000.0,
        ),
        Layer(
            name="pool", kind="pooling", activation_bytes_per_sample=4000.0, halo_bytes_per_sample=0.0,
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "layers.csv: is empty; the first line must name the columns name, kind, "),
        (HEADER, "layers.csv: has no layers below the header"),
        (f"{HEADER},flops\n", ":1: unknown column 'flops'; columns are: name, kind, "),
        (f"{HEADER},name\n", ":1: column name is there 2 times"),
        ("name,kind\n", ":1: column forward_flops_per_sample is missing"),
        (f"{HEADER}\na,dense,1,1\n", ":2: has 4 cells, but the header has 5"),
        (f"{HEADER}\na,,1,1,1\n", ":2: column kind: must be given"),
        (f"{HEADER}\na,dense,many,1,1\n", ":2: column forward_flops_per_sample: must be a number of at least 0"),
        (f"{HEADER}\na,dense,1,-1,1\n", ":2: column parameter_bytes: must be a number of at least 0, found '-1'"),
        (f"{HEADER}\na,dense,1,1e30,1\n", ":2: column parameter_bytes: must be a number of at least 0 and at most "),
        (f"{HEADER}\na,dense,1,1.5,1\n", ":2: column parameter_bytes: must be a whole number of bytes, found 1.5"),
        (f"{HEADER}\na,dense,1,1,\n", ":2: column activation_bytes_per_sample: must be a number"),
        (f'{HEADER}\n"a,dense,1,1,1\n', "is not valid CSV"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
    ],
)
def test_tables_that_hold_no_layers(tmp_path: Path, text: str | bytes, expected: str) -> None:
    with pytest.raises(ImportedModelError) as caught:
        layers_from_csv(written(tmp_path, text))
    assert expected in str(caught.value)


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ImportedModelError, match="cannot be read: No such file"):
        layers_from_csv(str(tmp_path / "none.csv"))
