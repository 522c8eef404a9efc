"""Names of devices that the catalogue does not know: the nearest that it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import SequenceMatcher
from typing import Final

from nodewise_cli.failures import InputError, RefusedAnswer
from nodewise_client import Client, Device, RefusedError, numbers_by_name

__all__ = ["catalogue_key", "device_named", "nearest_named"]

MOST_NEAR: Final = 4
SAME_MEMORY: Final = 0.07
"""Share by which a memory may differ from that of the catalogue: of 192 GB, B200 has 180 to use."""
ALIKE: Final = 0.6
"""Likeness from which a name is shown as near to another."""
_MEMORY: Final = re.compile(r"(?<![A-Za-z0-9.])(\d{1,3})\s*Gi?B?\b", re.IGNORECASE)
_WORD: Final = re.compile(r"[A-Za-z0-9.]+")
_FORM: Final = re.compile(r"^(sxm|pcie)\d?$")
_PLURAL: Final = re.compile(r"(?<=\d)s\b")
_MAKERS: Final = (
    {"nvidia", "geforce", "tesla", "amd", "instinct", "intel", "google", "cloud", "aws", "amazon", "azure", "gcp"}
    | {"gpu", "gpus", "tpu", "card", "cards", "graphics", "accelerator", "edition", "hgx"}
    | {"hbm2", "hbm2e", "hbm3", "hbm3e"}
)
"""Words that tell no devices apart."""
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
        keys = {catalogue_key(name) for device in devices for name in _names(device)}
        unknown = [name for name in dict.fromkeys(device_names) if catalogue_key(name) not in keys]
        if not unknown:
            raise
        hints = "; ".join(f"nearest to {name!r} are {', '.join(_nearest(name, devices))}" for name in unknown)
        raise RefusedAnswer(
            f"{error.reason}: {error.message}; {hints}: `nodewise devices` lists all",
            code=error.code,
            reason=error.reason,
            violations=[(field, "is missing, and an answer needs it") for field in error.missing_fields],
        ) from None


def device_named(name: str, devices: Iterable[Device]) -> tuple[Device, str]:
    """The device that a name means, and which of its names this is: as written, or with the same words and memory.

    Raises
    ------
    InputError
        With the nearest names, where none has this name.
    """
    all_devices = tuple(devices)
    for device in all_devices:
        if catalogue_key(name) in map(catalogue_key, _names(device)):
            return device, name
    memory = _MEMORY.search(name)
    alike = _with_words_of(name, all_devices) or _with_words_of(_PLURAL.sub("", name), all_devices)
    if memory is not None:
        off = [abs(size / 1e9 / float(memory[1]) - 1.0) for size, _, _ in alike]
        right = [(each, of) for each, of in zip(off, alike, strict=True) if each < SAME_MEMORY]
    else:
        right = [(of[0], of) for of in alike]
    if right:
        _, (_, device, known_name) = min(right, key=lambda each: each[0])
        return device, known_name
    if alike:
        sizes = " or ".join(sorted({f"{size / 1e9:.0f}" for size, _, _ in alike}))
        raise InputError(f"the catalogue has {alike[0][2]} with {sizes} GB of memory, found {name!r}")
    nearest = ", ".join(_nearest(name, all_devices, ALIKE))
    raise InputError(
        f"the catalogue has no device {name!r}; {f'nearest are {nearest}' if nearest else 'none is like it'}"
    )


def _with_words_of(name: str, devices: Iterable[Device]) -> list[tuple[float, Device, str]]:
    """Memory, device and name of the devices that a name may mean, whatever memory it states."""
    words = _words_of(name)
    return [
        (numbers_by_name(device.facts).get("memory_bytes", 0.0), device, each)
        for device in devices
        for each in _names(device)
        if words and _words_of(each) == words
    ]


def _words_of(name: str) -> frozenset[str]:
    """Words of a name that tell devices apart, but for their memory."""
    words = (word.casefold() for word in _WORD.findall(_MEMORY.sub(" ", name)))
    return frozenset(_FORM.sub(r"\1", word) for word in words if word not in _MAKERS)


def _nearest(name: str, devices: Iterable[Device], least: float = 0.0) -> list[str]:
    """Names of devices, the most alike first, from some likeness on."""
    words = re.findall(r"[a-z]*\d+|[a-z]+", name.casefold())
    models = [model for word in words for model in _GENERATIONS.get(word, ())]
    models += [word for word in words if word[-1].isdigit()][:1]
    key = catalogue_key(name)

    def likeness_of(device: Device) -> float:
        # The model's letters and number say more than the rest of a name.
        keys = [catalogue_key(each) for each in _names(device)]
        same = any(each.startswith(model) for each in keys for model in models)
        return same + max(SequenceMatcher(None, key, each).ratio() for each in keys)

    alike = {device.name: likeness_of(device) for device in devices}
    near = (each for each, likeness in alike.items() if likeness >= least)
    return sorted(near, key=lambda each: (-alike[each], each))[:MOST_NEAR]


def _names(device: Device) -> tuple[str, ...]:
    return (device.name, *device.aliases)


def catalogue_key(name: str) -> str:
    """The name as the catalogue compares it."""
    return "".join(letter for letter in name.casefold() if letter.isalnum()).removeprefix("nvidia")
