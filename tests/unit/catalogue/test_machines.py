"""Kinds of machines: the adapters that a device's nodes are likely to have, by the catalogue and by a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodewise.catalogue.loading import CatalogueError, load_catalogue
from nodewise.plugin import Catalogue

OWN = """
[machines."our racks"]
devices = ["H100"]
node_link_bytes_per_s = 80e9
weight = 100
source = "rack plan"
"""


@pytest.mark.parametrize(
    ("device", "likely"),
    [
        ("V100", 12.5e9),
        ("V100-SXM2-32GB", 12.5e9),
        ("T4", 6.25e9),
        ("A10G", 12.5e9),
        ("A100", 200e9),
        ("NVIDIA A100-SXM4-80GB", 200e9),
        ("H100", 400e9),
        ("H200", 400e9),
        ("B200", 400e9),
        ("B300", 800e9),
        ("GB200", 200e9),
        ("GB300", 400e9),
        ("MI300X", 400e9),
        ("TPU-v5e", 12.5e9),
    ],
)
def test_a_devices_nodes_have_likely_adapters(device: str, likely: float) -> None:
    links = load_catalogue().node_links(device)
    assert links[0][0] == likely
    shares = [share for _, share, _ in links]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0)
    assert all(source for _, _, source in links)


def test_every_accelerator_comes_in_a_machine() -> None:
    catalogue = load_catalogue()
    for device in catalogue.listed:
        assert bool(catalogue.node_links(device.name)) == ("cores" not in device.facts), device.name


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("p4d", 50e9),
        ("p5.48xlarge", 400e9),
        ("p5e", 400e9),
        ("a3-mega", 200e9),
        ("a3-ultra", 400e9),
        ("a4", 400e9),
        ("Standard_ND96isr_H100_v5", 400e9),
        ("p6e-gb200", 200e9),
        ("DGX A100", 200e9),
    ],
)
def test_machines_are_known_by_the_names_of_their_makers(name: str, link: float) -> None:
    machine = load_catalogue().machine(name)
    assert machine is not None
    assert machine.node_link_bytes_per_s == link


@pytest.mark.parametrize(
    ("name", "device", "per_node"),
    [
        ("p5.48xlarge", "H100", 8),
        ("p5e", "H200", 8),
        ("a3-megagpu-8g", "H100", 8),
        ("ND-H100-v5", "H100", 8),
        ("p4d.24xlarge", "A100-40GB", 8),
        ("p4de", "A100-80GB", 8),
        ("p6e-gb200", "GB200", 4),
        ("v5p-128", "TPU-v5p", 4),
        ("v5litepod-256", "TPU-v5e", 4),
        ("DGX A100", "A100", 8),
    ],
)
def test_a_machines_name_stands_for_its_device(name: str, device: str, per_node: int) -> None:
    catalogue = load_catalogue()
    machine = catalogue.named_machine(name)
    assert machine is not None
    assert (machine.device, machine.devices_per_node) == (device, per_node)
    assert catalogue.device(name) is catalogue.device(device)
    assert [link for link, _, _ in catalogue.node_links(name)] == [machine.node_link_bytes_per_s]
    (listed,) = (each for each in catalogue.listed if each.facts is catalogue.device(device))
    assert {machine.name, *machine.aliases} <= set(listed.aliases)


def test_a_machine_of_several_devices_stands_for_none() -> None:
    catalogue = load_catalogue()
    assert catalogue.named_machine("OVX with L40S") is None
    assert catalogue.named_machine("H100") is None
    assert catalogue.device("OVX with L40S") is None


def test_a_users_machine_joins_the_others_by_its_weight(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(OWN, encoding="utf-8")
    links = load_catalogue(path).node_links("H100")
    assert links[0][::2] == (80e9, "our racks: rack plan")
    assert {400e9, 200e9} <= {link for link, _, _ in links}


def test_an_unknown_device_comes_in_no_machine() -> None:
    assert load_catalogue().node_links("Z9") == ()
    assert Catalogue().node_links("H100") == ()
    assert load_catalogue().machine("Z9") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[machines.X]", "machines.X.devices: is missing"),
        (OWN.replace('["H100"]', '["Z9"]'), "machines.our racks.devices: 'Z9' is not a device of the catalogue"),
        (OWN.replace('["H100"]', '"H100"'), "machines.our racks.devices: must be a list of names"),
        (OWN.replace("100\n", "0\n"), "machines.our racks.weight: must be a number above 0, found 0"),
        (OWN.replace('"rack plan"', '""'), "machines.our racks.source: must be a string"),
        (OWN.replace("weight", "likely"), "machines.our racks.likely: is not a field; the fields are devices"),
        (OWN + 'aliases = ["p5"]', "machines.our racks.aliases: 'p5' already names 'p5.48xlarge'"),
    ],
)
def test_errors_name_entry_and_field(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CatalogueError) as caught:
        load_catalogue(path)
    assert said in str(caught.value)
