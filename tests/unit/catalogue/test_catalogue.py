"""The catalogue: shipped facts with sources, a user's file over them, and errors that name entry and field."""

from __future__ import annotations

import csv
import tomllib
from importlib import resources
from pathlib import Path

import pytest
from measurements import DATA

from nodewise.catalogue.loading import CatalogueError, load_catalogue
from nodewise.plugin import Catalogue, catalogue_key

MINE = """
[devices.Z9]
aliases = ["Zeta 9"]
fp16_flops_per_s = 1e14
memory_bytes = 48e9
memory_bytes_per_s = 1e12
intra_node_link = "ring"
source = "measured"

[links.ring]
bytes_per_s = 2e10
source = "measured"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["T4", "tesla t4", "NVIDIA T4", "K80", "P100", "V100", "RTX 2080 Ti", "2080Ti", "A10"])
def test_published_devices_are_known_by_their_usual_names(name: str) -> None:
    facts = load_catalogue().device(name)
    assert facts is not None
    assert facts["fp32_flops_per_s"] > 1e12
    assert facts["memory_bytes_per_s"] > 1e11
    assert facts["intra_node_link_bytes_per_s"] > 1e10


def test_newer_devices_and_links_are_known() -> None:
    catalogue = load_catalogue()
    a100, h100, h200 = (catalogue.device(name) for name in ("A100-SXM4-40GB", "h100", "H200"))
    assert a100 is not None
    assert h100 is not None
    assert h200 is not None
    assert a100["fp16_flops_per_s"] < h100["fp16_flops_per_s"] == h200["fp16_flops_per_s"]
    assert h100["memory_bytes_per_s"] < h200["memory_bytes_per_s"]
    ethernet, infiniband = catalogue.link("100GbE"), catalogue.link("InfiniBand EDR")
    assert ethernet == infiniband == {"bytes_per_s": 12.5e9}


@pytest.mark.parametrize(
    ("written_as", "name"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA_A100_80GB_PCIe", "A100-PCIe-80GB"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("H100-SXM5", "H100"),
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("NVIDIA H100 NVL", "H100-NVL"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA B300 SXM6 AC", "B300"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000"),
        ("AMD_Instinct_MI250", "MI250"),
        ("AMD Instinct MI300X", "MI300X"),
        ("TPU v5p", "TPU-v5p"),
        ("AMD Instinct MI300X 192GB HBM3", "MI300X"),
        ("Intel Gaudi 2", "Gaudi2"),
        ("NVIDIA A800-SXM4-80GB", "A800"),
        ("NVIDIA H800", "H800"),
        ("NVIDIA H20", "H20"),
        ("H100-80GB", "H100"),
        ("NVIDIA H100 96GB HBM3", "H100-96GB"),
        ("V100-16GB", "V100"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("NVIDIA GeForce RTX 5090", "RTX-5090"),
        ("NVIDIA GeForce RTX 3090", "RTX-3090"),
        ("NVIDIA GeForce GTX 1080 Ti", "1080Ti"),
        ("NVIDIA RTX A6000", "A6000"),
        ("NVIDIA A40", "A40"),
        ("NVIDIA L40", "L40"),
        ("Ascend 910B", "Ascend-910B"),
        ("AWS Trainium2", "Trainium2"),
    ],
)
def test_devices_are_known_as_clusters_write_them(written_as: str, name: str) -> None:
    catalogue = load_catalogue()
    assert catalogue.device(written_as) is not None
    assert catalogue.device(written_as) is catalogue.device(name)


def test_formats_of_fewer_bits_are_no_slower() -> None:
    order = ("fp32", "tf32", "bf16", "fp8", "fp4")
    for device in load_catalogue().listed:
        peaks = [device.facts[fact] for fact in (f"{bits}_flops_per_s" for bits in order) if fact in device.facts]
        assert peaks == sorted(peaks), device.name


def test_accelerators_say_when_they_were_announced() -> None:
    accelerators = [each for each in load_catalogue().listed if "cores" not in each.facts]
    years = {each.name: each.facts.get("announced_year", 0.0) for each in accelerators}
    assert all(2014 <= year <= 2025 for year in years.values())
    assert years["V100"] < years["A100"] < years["H100"] < years["B200"] < years["B300"]


@pytest.mark.parametrize(
    ("name", "devices_per_node", "domain"),
    [("H100", 8, 8), ("H100", 4, 4), ("GB200", 4, 72), ("GB200", 2, 36), ("GB300", 8, 72), ("Unheard", 5, 5)],
)
def test_a_links_domain_goes_beyond_a_node_where_the_system_says_so(
    name: str, devices_per_node: float, domain: float
) -> None:
    assert load_catalogue().link_domain_devices(name, devices_per_node) == domain


SYSTEMS = {
    "a100_pcie": "A100-PCIe-80GB",
    "a100_sxm": "A100-80GB",
    "a30": "A30",
    "b200_sxm": "B200",
    "b300_sxm": "B300",
    "gb200": "GB200",
    "gb300": "GB300",
    "h100_pcie": "H100-PCIe",
    "h100_sxm": "H100",
    "h200_sxm": "H200",
    "l4": "L4",
    "l40s": "L40S",
    "rtx_pro_6000_server": "RTX-PRO-6000",
}
KERNELS = DATA / "kernels" / "systems.csv"
OTHERWISE = {
    ("l40s", "mem_capacity"): "what is left with error correction, 45 of 48 GB",
    ("rtx_pro_6000_server", "mem_bw"): "that of the workstation edition; the server's data sheet says 1597 GB/s",
    ("b300_sxm", "fp4_tc_flops"): "14; the maker states 105 (early) and 108 PFLOP/s of eight",
}
"""What the authors of `systems.csv` state otherwise than the documents here by more than 2 %, and why."""


@pytest.mark.data
def test_facts_are_those_that_others_state() -> None:
    named = {
        "mem_bw": "memory_bytes_per_s",
        "mem_capacity": "memory_bytes",
        "bfloat16_tc_flops": "bf16_flops_per_s",
        "fp8_tc_flops": "fp8_flops_per_s",
        "fp4_tc_flops": "fp4_flops_per_s",
        "intra_node_bw": "intra_node_link_bytes_per_s",
        "num_gpus_per_node": "devices_per_node",
        "num_gpus_per_rack": "link_domain_devices",
    }
    catalogue, differs, compared = load_catalogue(), set(), 0
    with KERNELS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            facts = catalogue.device(SYSTEMS.get(row["system"], ""))
            for column, fact in named.items():
                if facts is None or fact not in facts or not row[column]:
                    continue
                # A GB of memory is 2^30 bytes to them, and 10^9 in data sheets.
                unit = 2.0**30 / 1e9 if column == "mem_capacity" else 1.0
                compared += 1
                if abs(float(row[column]) / unit / facts[fact] - 1.0) > 0.02:
                    differs.add((row["system"], column))
    assert compared > 60
    assert differs == set(OTHERWISE)


def test_every_shipped_entry_names_its_source() -> None:
    text = resources.files("nodewise.catalogue").joinpath("facts.toml").read_text(encoding="utf-8")
    for entries in tomllib.loads(text).values():
        assert all(len(fields["source"]) > len("IEEE 802.3") for fields in entries.values())


def test_what_is_not_known_is_none_and_an_empty_catalogue_knows_nothing() -> None:
    assert load_catalogue().device("TPU v9") is None
    assert load_catalogue().link("two cans and a string") is None
    assert Catalogue().device("T4") is None


def test_a_users_file_joins_the_shipped_facts(tmp_path: Path) -> None:
    catalogue = load_catalogue(written(tmp_path, MINE))
    assert catalogue.device("zeta-9") == {
        "fp16_flops_per_s": 1e14,
        "memory_bytes": 48e9,
        "memory_bytes_per_s": 1e12,
        "intra_node_link_bytes_per_s": 2e10,
    }
    assert catalogue.device("T4") == load_catalogue().device("T4")


def test_a_users_entry_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    own = (
        '[devices.t4]\nfp32_flops_per_s = 7e12\nmemory_bytes = 16e9\nmemory_bytes_per_s = 3e11\nsource = "clocked down"'
    )
    found = load_catalogue(written(tmp_path, own)).device("T4")
    assert found is not None
    assert found["fp32_flops_per_s"] == 7e12
    assert "fp16_flops_per_s" not in found


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    shipped, mine = load_catalogue(), load_catalogue(written(tmp_path, MINE))
    assert shipped.digest == load_catalogue().digest != mine.digest
    assert load_catalogue(written(tmp_path, "")).digest == shipped.digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[devices", "is not valid TOML"),
        ("[racks.X]", "racks: is not a section; the sections are devices, links"),
        ("devices = 3", "devices: must be a table of entries"),
        ("[devices]\nX = 3", "devices.X: must be a table of facts"),
        (MINE.replace("1e14", '"fast"'), "devices.Z9.fp16_flops_per_s: must be a number above 0, found 'fast'"),
        (MINE.replace("1e14", "-1"), "devices.Z9.fp16_flops_per_s: must be a number above 0, found -1"),
        (MINE.replace("1e14", "nan"), "devices.Z9.fp16_flops_per_s: must be a number above 0"),
        (MINE.replace("1e14", "true"), "devices.Z9.fp16_flops_per_s: must be a number above 0"),
        (MINE.replace("fp16_flops_per_s", "speed"), "devices.Z9.speed: is not a fact; the facts are fp32_flops_per_s"),
        (MINE.replace("memory_bytes = 48e9\n", ""), "devices.Z9.memory_bytes: is missing"),
        (MINE.replace("fp16_flops_per_s = 1e14\n", ""), "devices.Z9.fp32_flops_per_s: is missing; state it, or"),
        (
            MINE.replace('"ring"', '"wire"'),
            "devices.Z9.intra_node_link: must name a link of the catalogue",
        ),
        (MINE.replace('"Zeta 9"', '"Tesla V100"'), "devices.Z9.aliases: 'Tesla V100' already names 'V100'"),
        (MINE.replace('["Zeta 9"]', '"Zeta 9"'), "devices.Z9.aliases: must be a list of names"),
        (MINE.replace('source = "measured"', 'source = ""', 1), "devices.Z9.source: must be a string"),
        ("[links.wire]\nbytes_per_s = 1e9", "links.wire.source: is missing"),
    ],
)
def test_errors_name_file_entry_and_field(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CatalogueError) as caught:
        load_catalogue(written(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path / "mine.toml"))
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"nowhere\.toml: cannot be read \(No such file"):
        load_catalogue(tmp_path / "nowhere.toml")


def test_processors_have_cores_and_a_cache_and_the_memory_of_their_machine(tmp_path: Path) -> None:
    facts = load_catalogue().device("Intel Xeon E5-2450L")
    assert facts is not None
    assert (facts["cores"], facts["last_level_cache_bytes"]) == (8.0, 20e6)
    assert "memory_bytes" not in facts
    assert facts["fp32_flops_per_s"] == 8 * 1.8e9 * 16
    own = (
        "[devices.Ours]\ncores = 8\nfp32_flops_per_s = 2e11\nmemory_bytes = 9.6e10\nmemory_bytes_per_s = 3e10\n"
        'source = "measured"\n'
    )
    assert load_catalogue(written(tmp_path, own)).devices["ours"]["memory_bytes"] == 9.6e10


RING = (
    MINE
    + """
[all_reduces.pair]
device = "Zeta 9"
ranks = 2
sizes_bytes = [1e6, 1e8]
seconds = [1e-4, 8e-3]
source = "nccl-tests, our rack"

[all_reduces.ring]
link = "ring"
ranks = 2
sizes_bytes = [1e6, 1e8]
seconds = [2e-4, 9e-3]
source = "the same, another rack"

[all_reduces.four]
link = "ring"
ranks = 4
sizes_bytes = [1000000, 100000000]
seconds = [3e-4, 1e-2]
source = "the same"

[matrix_products.half]
device = "Z9"
precision = "fp16"
flops = [1e9, 1e12]
seconds = [1e-4, 1.25e-2]
source = "measured"
"""
)


def test_measured_tables_are_found_by_every_name_of_a_device(tmp_path: Path) -> None:
    catalogue = load_catalogue(written(tmp_path, RING))
    for name in ("Z9", "zeta 9"):
        tables = catalogue.all_reduces[catalogue_key(name)]
        assert list(tables) == [2, 4]
        # A device's own measurements stand before those of its link.
        assert tables[2].seconds == (1e-4, 8e-3)
        assert tables[4].seconds == (3e-4, 1e-2)
        assert tables[4].sizes == (1e6, 1e8)
        assert catalogue.matrix_products[catalogue_key(name)]["fp16"].source == "measured"
    assert set(catalogue.all_reduces) == {"z9", "zeta9"}
    changed = load_catalogue(written(tmp_path, RING.replace("8e-3", "8.1e-3")))
    assert len({catalogue.digest, changed.digest, load_catalogue(written(tmp_path, MINE)).digest}) == 3


def test_a_measured_link_counts_for_shipped_devices(tmp_path: Path) -> None:
    text = RING.replace('link = "ring"', 'link = "NVLink 3"').replace('device = "Zeta 9"', 'device = "A100-80GB"')
    catalogue = load_catalogue(written(tmp_path, text))
    assert catalogue.all_reduces["a10080gb"][2].seconds == (1e-4, 8e-3)
    assert catalogue.all_reduces["a10040gb"][2].seconds == (2e-4, 9e-3)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"Zeta 9"\nranks', '"Z8"\nranks', "all_reduces.pair.device: must name a device of the catalogue, found 'Z8'"),
        (
            'link = "ring"\nranks = 4',
            'link = "100GbE"\nranks = 4',
            "all_reduces.four.link: must name a link that",
        ),
        (
            'link = "ring"\nranks = 4',
            'link = "ring"\nranks = 2',
            "all_reduces.four.ranks: 'ring' has 2 ranks",
        ),
        ('link = "ring"\nranks = 4', "ranks = 4", "all_reduces.four.device: must be stated, or link"),
        ("ranks = 4", "ranks = 1", "all_reduces.four.ranks: must be a whole number of at least 2, found 1"),
        (
            "ranks = 4",
            "ranks = 4\nbytes = 1",
            "all_reduces.four.bytes: is not a field; the fields are device",
        ),
        ("[3e-4, 1e-2]", "[3e-4]", "all_reduces.four.seconds: must be a list of at least 2 numbers above 0"),
        ("[3e-4, 1e-2]", "[3e-4, 1e-2, 1.0]", "seconds: must have one number for each of the 2 sizes_bytes, found 3"),
        ("[3e-4, 1e-2]", "[3e-4, -1e-2]", "all_reduces.four.seconds: must be a list of at least 2 numbers above 0"),
        ("[1000000, 100000000]", "[100, 100]", "all_reduces.four.sizes_bytes: must ascend, each size once"),
        ('"nccl-tests, our rack"', "3", "all_reduces.pair.source: must be a string, found 3"),
        ('source = "nccl-tests, our rack"', "", "all_reduces.pair.source: is missing"),
        ('"fp16"', '"fp12"', "matrix_products.half.precision: must be one of fp32"),
        ('"fp16"', '"bf16"', "matrix_products.half.precision: the device's entry has no bf16_flops_per_s"),
        (
            "1.25e-2]",
            "1.25e-3]",
            "half.seconds: imply 8e+14 FLOP/s, more than the device's peak of 1e+14",
        ),
        ('device = "Z9"\nprecision', 'device = "X"\nprecision', "matrix_products.half.device: must name a device"),
        ('device = "Z9"\nprecision', "precision", "matrix_products.half.device: is missing"),
    ],
)
def test_errors_of_measured_tables_name_entry_and_field(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in RING
    with pytest.raises(CatalogueError) as caught:
        load_catalogue(written(tmp_path, RING.replace(old, new)))
    assert said in str(caught.value)
