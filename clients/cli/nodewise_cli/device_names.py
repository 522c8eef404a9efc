"""Names of devices that the catalogue does not know: the nearest that it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import SequenceMatcher
from typing import Final

from nodewise_cli.failures import InputError, RefusedAnswer
from nodewise_client import Client, Device, RefusedError

__all__ = ["device_named", "nearest_named"]

MOST_NEAR: Final = 4
_GENERATIONS: Final = {
    "ada": ("l4",),
    "ampere": ("a10", "a30"),
    "blackwell": ("b200", "b300", "gb"),
    "hopper": ("h100", "h200", "gh"),
    "pascal": ("p100",),
    "turing": ("t4", "2080"),
    "volta": ("v100",),
}
"""Names of architectures, with how those of their devices begin."""


@contextmanager
def nearest_named(client: Client, names: Iterable[str | None]) -> Iterator[None]:
    """Say with a refusal which known devices are nearest to those asked about that are not known.

    Raises
    ------
    RefusedAnswer
        The refusal with the names; RefusedError where every device is known.
    """
    try:
        yield
    except RefusedError as error:
        device_names = [name for name in names if name]
        devices = client.list_devices().devices if device_names else ()
        keys = {_key(name) for device in devices for name in _names(device)}
        unknown = [name for name in dict.fromkeys(device_names) if _key(name) not in keys]
        if not unknown:
            raise
        hints = "; ".join(f"nearest to {name!r} are {', '.join(_nearest(name, devices))}" for name in unknown)
        raise RefusedAnswer(
            f"{error.reason}: {error.message}; {hints}: `nodewise devices` lists all",
            code=error.code,
            reason=error.reason,
            violations=[(field, "is missing, and an answer needs it") for field in error.missing_fields],
        ) from None


def device_named(name: str, devices: Iterable[Device]) -> Device:
    """The device that a name means.

    Raises
    ------
    InputError
        With the nearest names, where none has this name.
    """
    all_devices = tuple(devices)
    for device in all_devices:
        if _key(name) in map(_key, _names(device)):
            return device
    raise InputError(
        f"the catalogue has no device {name!r}; nearest are {', '.join(_nearest(name, all_devices)) or 'none'}"
    )


def _nearest(name: str, devices: Iterable[Device]) -> list[str]:
    """Names of devices, the most alike first."""
    words = re.findall(r"[a-z]*\d+|[a-z]+", name.casefold())
    models = [model for word in words for model in _GENERATIONS.get(word, ())]
    models += [word for word in words if word[-1].isdigit()][:1]
    key = _key(name)

    def likeness(device: Device) -> float:
        # The model's letters and number say more than the rest of a name.
        keys = [_key(each) for each in _names(device)]
        same = any(each.startswith(model) for each in keys for model in models)
        return same + max(SequenceMatcher(None, key, each).ratio() for each in keys)

    alike = {device.name: likeness(device) for device in devices}
    return sorted(alike, key=lambda each: (-alike[each], each))[:MOST_NEAR]


def _names(device: Device) -> tuple[str, ...]:
    return (device.name, *device.aliases)


def _key(name: str) -> str:
    """As the catalogue compares names."""
    return "".join(letter for letter in name.casefold() if letter.isalnum()).removeprefix("nvidia")
