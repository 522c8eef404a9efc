"""What facts tell of another device or link: how much faster it computes, and how much sooner it has exchanged.

Both are intervals, as facts tell peaks and not what is reached.

Arithmetic grows with the peak of its number format, everything else with the memory's bandwidth (the roofline of S.
Williams, A. Waterman and D. Patterson, Commun. ACM 52(4), 2009). Which of both binds a job is not known, nor often its
format: the ratio lies between the least and the largest of theirs.

Exchange is messages and bytes (R. W. Hockney, Parallel Computing 20(3), 1994): of its time the bytes' share falls with
the bandwidth, the rest stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Catalogue

__all__ = ["FACT_WORDS", "Ratio", "exchange_doubt", "exchange_over", "known_as", "ratio_of"]

EFFICIENCY_LOG_SD: Final = 0.3
"""Standard deviation of ln of what two devices reach of the peaks that their facts tell, against each other: software
is tuned to one, the other's clock falls under load."""

FORMATS: Final = ("fp32", "tf32", "fp16", "bf16")
"""Number formats that networks are trained in."""

BYTES_SHARE: Final = 0.8
BYTES_SHARE_LEAST: Final = 0.6
"""Share of exchange that is its bytes' time, and how little it may be; at most it is all. Gradients are many megabytes,
for which messages count little, but neither hosts nor switches grow with a faster link."""

_PEAK: Final = "_flops_per_s"
_MEMORY: Final = "memory_bytes_per_s"

FACT_WORDS: Final[Mapping[str, str]] = {
    **{f"{name}{_PEAK}": f"{name} peak" for name in FORMATS},
    _MEMORY: "memory bandwidth",
}
"""Facts in words for people."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ln of how much faster a device computes than another, its standard deviation, and the facts used."""

    log: float
    log_sd: float
    facts: tuple[str, ...]


def ratio_of(catalogue: Catalogue, device: str, other: str, precision: str | None) -> Ratio | None:
    """How much faster a device is than another; None where the catalogue lacks either, or has no fact of both."""
    first, second = catalogue.device(device), catalogue.device(other)
    if first is None or second is None:
        return None
    names = _comparable_facts(first, second, precision or "")
    if not names:
        return None
    logs = np.log([first[name] / second[name] for name in names])
    least, most = float(logs.min()), float(logs.max())
    return Ratio(0.5 * (least + most), float(np.hypot(0.5 * (most - least), EFFICIENCY_LOG_SD)), names)


def exchange_over(bandwidth_log: float, share: float = BYTES_SHARE) -> float:
    """Ln of what exchange takes over a link of another bandwidth, by ln of that over this; never rises with it."""
    return float(np.log1p(share * np.expm1(-bandwidth_log)))


def exchange_doubt(bandwidth_log: float) -> float:
    """Standard deviation of it: half the range between the least and the largest share of bytes."""
    return 0.5 * abs(exchange_over(bandwidth_log, BYTES_SHARE_LEAST) - exchange_over(bandwidth_log, 1.0))


def known_as(catalogue: Catalogue, device: str, names: Collection[str]) -> str:
    """The one of some names that means the device: its own, or an alias in the same entry; "" where there is none."""
    if device in names:
        return device
    facts = catalogue.device(device)
    same = sorted(name for name in names if facts is not None and catalogue.device(name) is facts)
    return same[0] if same else ""


def _comparable_facts(first: Mapping[str, float], second: Mapping[str, float], precision: str) -> tuple[str, ...]:
    """Facts that both state: peaks of the job's number format, or of all where it is not known, and the memory's."""
    number_format = precision.casefold()
    formats = (
        (number_format,) if f"{number_format}{_PEAK}" in first and f"{number_format}{_PEAK}" in second else FORMATS
    )
    names = (*(f"{each}{_PEAK}" for each in formats), _MEMORY)
    return tuple(name for name in names if name in first and name in second)
