"""Where a law of lifetimes comes from, and what to say where it is used for something else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final

from nodewise.plugin import Notice

__all__ = ["STALE_DAYS", "Provenance"]

STALE_DAYS: Final = 180
"""Age beyond which lifetimes are called stale: our choice, as providers change capacity and prices several times a
year. Two campaigns on the same devices and regions differ by up to 0.6 in the share revoked within a day (CM-DARE's
published lifetimes beside those of its other campaign, cake-lab/CM-DARE, Apache-2.0)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What a law of lifetimes was learned from.

    Attributes
    ----------
    data_set : name of the observations, or what was stated in their place.
    device, place : what was observed, and where; empty if not known.
    measured : when observations ended, at the latest, if known.
    machines : lifetimes observed; 0 for a law that was stated.
    law : `empirical`, `weibull`, `exponential`, `trace` or `stated`.
    ks : largest distance between the law and the observed shares revoked (Kolmogorov-Smirnov); absent where the law is
        the observations themselves.
    notes : what happened on the way, such as a fit that fell back.
    """

    data_set: str
    device: str = ""
    place: str = ""
    measured: date | None = None
    machines: int = 0
    law: str = "stated"
    ks: float | None = None
    notes: tuple[str, ...] = ()

    def warnings(self, *, device: str, place: str, today: date | None = None) -> tuple[Notice, ...]:
        """What an answer for a device at a place has to say about lifetimes from here."""
        notices = [Notice("LIFETIMES_EXTENDED", note) for note in self.notes]
        if not self.place or self.place != place:
            where = f"{self.place or 'an unknown place'}, not in {place or 'an unstated place'}"
            notices.append(
                Notice("LIFETIMES_ELSEWHERE", (f"lifetimes were measured in {where}: they may not hold elsewhere"))
            )
        if not (self.device and self.device.casefold() == device.casefold()):
            what = f"{self.device or 'an unknown device'}, not on {device or 'an unstated device'}"
            notices.append(Notice("LIFETIMES_OF_ANOTHER_DEVICE", f"lifetimes were measured on {what}"))
        if self.measured is None:
            text = f"the date of the lifetimes of {self.data_set} is not known"
            notices.append(Notice("LIFETIMES_UNDATED", text))
        elif today is not None and (today - self.measured).days > STALE_DAYS:
            text = f"lifetimes were measured until {self.measured} at the latest, and may have changed since"
            notices.append(Notice("LIFETIMES_STALE", text))
        if self.machines:
            # Of a share of one half, where it is largest.
            text = (
                f"only {self.machines} lifetimes were measured: the share of revoked nodes is uncertain by "
                f"±{0.5 / self.machines**0.5:.2f}"
            )
            notices.append(Notice("LIFETIMES_FEW", text))
        return tuple(notices)
