"""Reading the catalogue: the shipped facts, and a user's file that overrides them."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from nodewise.catalogue.efficiencies import check_efficiency, efficiencies_of
from nodewise.catalogue.machines import check_machine, devices_called, machine_names, machines_of, machines_with
from nodewise.catalogue.measurements import FIELDS as MEASURED
from nodewise.catalogue.measurements import Fail, Named, all_reduces_of, check_measured, is_positive, matrix_products_of
from nodewise.plugin import Catalogue, CatalogueDevice, catalogue_key

__all__ = ["CatalogueError", "load_catalogue"]

DEVICE_FACTS: Final = (
    "fp32_flops_per_s",
    "tf32_flops_per_s",
    "fp16_flops_per_s",
    "bf16_flops_per_s",
    "fp8_flops_per_s",
    "fp4_flops_per_s",
    "memory_bytes",
    "memory_bytes_per_s",
    "devices_per_node",
    "link_domain_devices",
    "announced_year",
    "share_of_name",
    "cores",
    "last_level_cache_bytes",
    "power_limit_watts",
    "idle_watts",
    "transformer_watts",
)
LINK_FACTS: Final = ("bytes_per_s",)
NEEDED: Final = {"devices": ("memory_bytes", "memory_bytes_per_s"), "links": ("bytes_per_s",)}
KNOWN: Final = {"devices": DEVICE_FACTS, "links": LINK_FACTS}
EFFICIENCIES: Final = "efficiencies"
MACHINES: Final = "machines"
SHIPPED: Final = ("facts.toml", "machines.toml")
LINK: Final = "intra_node_link"
LINK_FACT: Final = "intra_node_link_bytes_per_s"
"""The fact that holds the bandwidth of the link that an entry names."""
TEXTS: Final = {"devices": ("source", LINK), "links": ("source",)}

_Entries = dict[str, dict[str, Any]]


class CatalogueError(ValueError):
    """An invalid entry; the text names file, entry and field, and what it must hold."""


def load_catalogue(path: Path | None = None) -> Catalogue:
    """The shipped facts; entries of a user's TOML file replace those of the same name, or are added.

    Raises
    ------
    CatalogueError
        Naming the file, the entry and the field.
    """
    if path is None:
        return _shipped_catalogue()
    name = str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not valid UTF-8"
        raise CatalogueError(f"{name}: cannot be read ({reason})") from None
    defaults, own = _shipped_sections(), _sections(text, name)
    return _catalogue({section: _join(defaults[section], own[section]) for section in defaults}, name)


@cache
def _shipped_catalogue() -> Catalogue:
    """Parsed once per process; read-only, and the base of every catalogue."""
    return _catalogue(_shipped_sections(), SHIPPED[0])


@cache
def _shipped_sections() -> Mapping[str, _Entries]:
    folder = resources.files("nodewise.catalogue")
    text = "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in SHIPPED)
    return _sections(text, SHIPPED[0])


def _catalogue(sections: Mapping[str, _Entries], name: str) -> Catalogue:
    """The catalogue of valid entries; the file's name is for messages."""
    fail = _failing(name)
    links = _by_name(sections["links"], "links", fail)
    devices = _by_name(_with_links(sections["devices"], links, fail), "devices", fail)
    link_of = {
        catalogue_key(alias): catalogue_key(fields[LINK])
        for device, fields in sections["devices"].items()
        if LINK in fields
        for alias in (device, *fields.get("aliases", ()))
    }
    machines = machines_of(sections[MACHINES], devices, fail)
    devices = devices_called(machines, devices)
    link_of = {
        key: link
        for device, link in link_of.items()
        for key in (device, *(each for each, facts in devices.items() if facts is devices[device]))
    }
    content = json.dumps(dict(sections), sort_keys=True).encode()
    return Catalogue(
        digest=hashlib.sha256(content).hexdigest(),
        devices=devices,
        links=links,
        listed=tuple(
            CatalogueDevice(
                name=device,
                aliases=tuple(dict.fromkeys((*own, *machine_names(machines, (device, *own))))),
                facts=devices[catalogue_key(device)],
                intra_node_link=fields.get(LINK, ""),
                source=fields["source"],
            )
            for device, fields in sections["devices"].items()
            for own in (fields.get("aliases", ()),)
        ),
        all_reduces=all_reduces_of(sections["all_reduces"], devices, links, link_of, fail),
        matrix_products=matrix_products_of(sections["matrix_products"], devices, fail),
        efficiencies=efficiencies_of(sections[EFFICIENCIES], devices, fail),
        machines=machines,
        machines_with=machines_with(machines),
    )


def _failing(name: str) -> Fail:
    def fail(where: str, field: str, text: str) -> CatalogueError:
        return CatalogueError(f"{name}: {where}.{field}: {text}")

    return fail


def _sections(text: str, name: str) -> dict[str, _Entries]:
    """The entries of a file, checked one by one."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"{name}: is not valid TOML: {error}") from None
    known_sections, fail = (*KNOWN, *MEASURED, EFFICIENCIES, MACHINES), _failing(name)
    unknown = sorted(set(document) - set(known_sections))
    if unknown:
        raise CatalogueError(f"{name}: {unknown[0]}: is not a section; the sections are {', '.join(known_sections)}")
    sections: dict[str, _Entries] = {}
    for section in known_sections:
        entries = document.get(section, {})
        if not isinstance(entries, dict):
            raise CatalogueError(f"{name}: {section}: must be a table of entries, [{section}.NAME]")
        for entry, fields in entries.items():
            if not isinstance(fields, dict):
                raise CatalogueError(f"{name}: {section}.{entry}: must be a table of facts")
            if section in KNOWN:
                _check_entry(section, entry, fields, fail)
            elif section == EFFICIENCIES:
                check_efficiency(entry, fields, fail)
            elif section == MACHINES:
                check_machine(entry, fields, fail)
            else:
                check_measured(section, entry, fields, fail)
        sections[section] = entries
    return sections


def _check_entry(section: str, entry: str, fields: Mapping[str, Any], fail: Fail) -> None:
    numbers, texts, where = KNOWN[section], TEXTS[section], f"{section}.{entry}"
    for field, value in fields.items():
        if field in numbers:
            if not is_positive(value):
                raise fail(where, field, f"must be a number above 0, found {value!r}")
        elif field in texts:
            if not isinstance(value, str) or not value.strip():
                raise fail(where, field, f"must be a string, found {value!r}")
        elif field == "aliases":
            if not isinstance(value, list) or not all(isinstance(each, str) and catalogue_key(each) for each in value):
                raise fail(where, field, f"must be a list of names, found {value!r}")
        else:
            raise fail(where, field, f"is not a fact; the facts are {', '.join((*numbers, *texts, 'aliases'))}")
    for field in (*NEEDED[section], "source"):
        # The memory of a processor belongs to its machine, so no document about the processor states it.
        if field not in fields and not (field == "memory_bytes" and "cores" in fields):
            raise fail(where, field, "is missing")
    if section == "devices" and not any(field.endswith("_flops_per_s") for field in fields):
        raise fail(where, "fp32_flops_per_s", "is missing; state it, or the peak of another number format")


def _join(defaults: _Entries, own: _Entries) -> _Entries:
    """All entries; a user's entry replaces the shipped one of its name."""
    own_keys = {catalogue_key(name) for name in own}
    return {name: fields for name, fields in defaults.items() if catalogue_key(name) not in own_keys} | own


def _with_links(devices: _Entries, links: Named, fail: Fail) -> _Entries:
    """Devices with their link's bandwidth instead of its name."""
    devices_with_links: _Entries = {}
    for device, fields in devices.items():
        link = fields.get(LINK)
        if link is not None and catalogue_key(link) not in links:
            raise fail(f"devices.{device}", LINK, f"must name a link of the catalogue, found {link!r}")
        bandwidth = {} if link is None else {LINK_FACT: links[catalogue_key(link)]["bytes_per_s"]}
        devices_with_links[device] = {**fields, **bandwidth}
    return devices_with_links


def _by_name(entries: _Entries, section: str, fail: Fail) -> Named:
    """Facts under the keys of every name of an entry."""
    facts_by_key: dict[str, Mapping[str, float]] = {}
    owner: dict[str, str] = {}
    for entry, fields in entries.items():
        facts = MappingProxyType(
            {field: float(value) for field, value in fields.items() if isinstance(value, int | float)}
        )
        for alias in (entry, *fields.get("aliases", ())):
            key = catalogue_key(alias)
            if owner.setdefault(key, entry) != entry:
                text = f"{alias!r} already names {owner[key]!r}; to replace that entry, use its own name"
                raise fail(f"{section}.{entry}", "aliases", text)
            facts_by_key[key] = facts
    return MappingProxyType(facts_by_key)
