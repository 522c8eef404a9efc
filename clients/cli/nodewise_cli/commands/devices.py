"""`nodewise devices`: the devices in the catalogue, by all their names."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

from typer import Argument

from nodewise_cli.commands.options import ONE_MINUTE, Call
from nodewise_cli.device_names import device_named
from nodewise_cli.views.numbers import format_number
from nodewise_cli.views.table import figures, print_table, words
from nodewise_client import Device, ListDevicesResponse

__all__ = ["devices"]

_PEAKS: Final = ("bf16_flops_per_s", "fp16_flops_per_s", "fp32_flops_per_s")


def devices(
    name: Annotated[
        str | None, Argument(metavar="[NAME]", help="Show only the device that this name means, such as H100.")
    ] = None,
    call: Call = ONE_MINUTE,
) -> None:
    """List devices with their other names, memory, peak and link.

    Case, spaces, punctuation and a leading NVIDIA do not matter in a name. The peak is the one of bf16, else fp16, else
    fp32, without sparsity.
    """
    with call.connect() as client:
        response = client.list_devices()
    if name is not None:
        response = replace(response, devices=(device_named(name, response.devices)[0],))
    call.tell(_document, _show, response)


def _document(response: ListDevicesResponse) -> dict[str, Any]:
    return {"devices": [_entry(device) for device in response.devices]}


def _entry(device: Device) -> dict[str, Any]:
    facts = {fact.name: fact.value for fact in device.facts}
    return {
        "name": device.name,
        "aliases": list(device.aliases),
        "facts": facts,
        "intra_node_link": device.intra_node_link or None,
        "source": device.source,
    }


def _show(response: ListDevicesResponse) -> None:
    rows = []
    for entry in map(_entry, response.devices):
        facts = entry["facts"]
        memory = facts.get("memory_bytes")
        peak = next((facts[name] for name in _PEAKS if name in facts), None)
        rows.append(
            [
                entry["name"],
                format_number(None if memory is None else memory / 2**30),
                format_number(None if peak is None else peak / 1e12),
                entry["intra_node_link"] or "-",
                ", ".join(entry["aliases"]) or "-",
            ]
        )
    names = [words("device"), figures("memory GiB"), figures("peak TFLOP/s"), words("link in a node")]
    print_table([*names, words("other names")], rows)
