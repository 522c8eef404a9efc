"""Efficiencies of measured kernels in the catalogue: shipped ones are what the script prints; errors name the field."""

from __future__ import annotations

import runpy
import sys
import tomllib
from importlib import resources
from pathlib import Path

import pytest
from measurements import DATA

from nodewise.catalogue.loading import CatalogueError, load_catalogue

ROOT = Path(__file__).resolve().parents[3]
KERNELS = DATA / "kernels"
MINE = """
[efficiencies.mine]
device = "T4"
precision = "fp16"
matrix_share = 0.5
head_sizes = [64, 128]
attention_shares = [0.2, 0.3]
source = "measured"
"""


def test_efficiencies_are_found_by_every_name_of_a_device() -> None:
    catalogue = load_catalogue()
    of = catalogue.efficiencies["h10080gbhbm3"]
    assert of is catalogue.efficiencies["h100"] or of == catalogue.efficiencies["h100"]
    assert set(of) == {"bf16", "fp8"}
    assert 0.0 < of["fp8"].matrix_share < of["bf16"].matrix_share < 1.0
    assert dict(zip(of["bf16"].head_sizes, of["bf16"].attention_shares, strict=True))[128.0] > 0.5
    assert of["fp8"].head_sizes == ()


def test_a_user_states_their_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE, encoding="utf-8")
    found = load_catalogue(tmp_path / "mine.toml").efficiencies["teslat4"]["fp16"]
    assert (found.matrix_share, found.attention_shares, found.source) == (0.5, (0.2, 0.3), "measured")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"T4"', '"T5"', "efficiencies.mine.device: must name a device of the catalogue, found 'T5'"),
        ('device = "T4"', "", "efficiencies.mine.device: must be a string, found None"),
        ('"fp16"', '"fp8"', "efficiencies.mine.precision: the device's entry has no fp8_flops_per_s"),
        ('"fp16"', '"fp12"', "efficiencies.mine.precision: must be one of fp32"),
        ("0.5", "1.5", "efficiencies.mine.matrix_share: must be above 0 and at most 1, found 1.5"),
        ("[64, 128]", "[128, 64]", "efficiencies.mine.head_sizes: must be a list of numbers above 0 that ascend"),
        ("[0.2, 0.3]", "[0.2]", "efficiencies.mine.attention_shares: must be a list of 2 numbers"),
        ("matrix_share", "share", "efficiencies.mine.share: is not a field; the fields are device, precision"),
        ("[efficiencies.mine]", MINE.replace("mine", "other") + "\n[efficiencies.mine]", "of this device already"),
    ],
)
def test_errors_name_entry_and_field(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "mine.toml").write_text(MINE.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(CatalogueError) as caught:
        load_catalogue(tmp_path / "mine.toml")
    assert said in str(caught.value)


@pytest.mark.data
@pytest.mark.parametrize("entries", [True, False])
def test_the_shipped_ones_and_the_page_are_what_the_script_prints(
    entries: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = ROOT / "research" / "measure_kernels.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(KERNELS), *(["--entries"] if entries else [])])
    runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr().out
    if entries:
        text = resources.files("nodewise.catalogue").joinpath("facts.toml").read_text(encoding="utf-8")
        assert tomllib.loads(printed)["efficiencies"] == tomllib.loads(text)["efficiencies"]
    else:
        page = (ROOT / "research" / "kernels.md").read_text(encoding="utf-8")
        assert all(line in page for line in printed.splitlines())
