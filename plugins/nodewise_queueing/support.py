"""Which questions the evidence supports, and what would have to be measured for the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nodewise.plugin import Notice, Refusal, SyncMode
from nodewise_queueing.evidence import DeviceEvidence
from nodewise_queueing.rows import CurveKey

__all__ = ["OTHER_WORKERS", "PHASE_TIMINGS", "Support"]

PHASE_TIMINGS = "phase_timings"
OTHER_WORKERS = "observations at another number of workers"
LINK = "network.link_bytes_per_second"
"""What a refusal names as missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """The evidence by device, asked for rows."""

    devices: Mapping[str, DeviceEvidence]

    def device(self, key: CurveKey) -> str | Refusal:
        """The device whose evidence answers a row, or why none does.

        Evidence of a device that was not stated stands for any; a row that states none takes the only one there is.
        """
        device = key.device
        if device not in self.devices:
            if "" in self.devices:
                device = ""
            elif not device and len(self.devices) == 1:
                device = next(iter(self.devices))
            elif self.devices:
                known, asked = ", ".join(self.devices), device or "an accelerator that is not stated"
                return Refusal.missing(
                    f"the evidence is of {known}; nothing was measured on {asked}", PHASE_TIMINGS, OTHER_WORKERS
                )
            else:
                return Refusal.missing(
                    "nothing was measured: the queueing model needs phase timings of one worker, or throughputs of "
                    "parameter-server runs at two or more numbers of workers",
                    PHASE_TIMINGS,
                    OTHER_WORKERS,
                )
        refusal = self._refusal(self.devices[device], key)
        return device if refusal is None else refusal

    def _refusal(self, evidence: DeviceEvidence, key: CurveKey) -> Refusal | None:
        if key.setting.link_bytes_per_s > 0.0 and not _link_known(evidence, key):
            return Refusal.missing(
                "a link is asked about, but not known of what was measured: transfers cannot be scaled to it", LINK
            )
        if evidence.phases is not None:
            return None
        if key.backup_workers:
            return Refusal.missing(
                "throughputs alone do not tell how workers' compute varies, which is what backup workers are for",
                PHASE_TIMINGS,
            )
        runs = evidence.runs.get(key.mode)
        if runs is not None:
            return None
        mode = key.mode.name
        if evidence.runs:
            other = ", ".join(SyncMode(mode).name for mode in evidence.runs)
            known = f"throughputs of {other} runs say nothing of {mode}: their steps are counted differently"
        else:
            known = f"no {mode} throughput is known"
        if evidence.queued_timings:
            counted = ", ".join(str(count) for count in evidence.queued_timings)
            known += f"; phases timed with {counted} workers hold waiting, and one worker's are needed"
        return Refusal.missing(known, PHASE_TIMINGS, OTHER_WORKERS)

    def devices_of(self, key: CurveKey, *, phases_needed: bool) -> tuple[str, ...] | Refusal:
        """The devices whose evidence answers a curve, one per class of workers, or why some class has none.

        Workers that are not alike, and simulations, need the phases of every device.
        """
        found = []
        for name in [each.device for each in key.classes] or [key.device]:
            device = self.device(replace(key, device=name))
            if isinstance(device, Refusal):
                return device
            if (phases_needed or key.classes) and self.devices[device].phases is None:
                return Refusal.missing(
                    f"throughputs alone do not tell the phases of {name or 'the workers'}: workers that are not alike, "
                    "and simulations, need phase timings",
                    PHASE_TIMINGS,
                )
            found.append(device)
        return tuple(found)

    def only(self, device: str, key: CurveKey) -> int | None:
        """The one number of workers that a device's evidence answers for; None = any."""
        evidence = self.devices[device]
        if evidence.phases is not None:
            return None
        counts = evidence.runs[key.mode].worker_counts
        return counts[0] if len(counts) == 1 else None

    def elsewhere(self, mode: SyncMode, only: int) -> Refusal:
        """Why other numbers of workers than the one that was measured are not answered."""
        return Refusal.missing(
            f"{mode.name} throughput is known at {only} workers only, which does not tell compute from waiting at "
            "another number",
            PHASE_TIMINGS,
            OTHER_WORKERS,
        )

    def notices(self, device: str, asked: str) -> tuple[Notice, ...]:
        """What the reader should know of the evidence of a device that answers for the one that was asked about."""
        evidence = self.devices[device]
        taken: tuple[Notice, ...] = ()
        if asked and not device:
            taken = (Notice("DEVICE_ASSUMED", f"the evidence does not say its device: it is taken as that of {asked}"),)
        if not evidence.queued_timings:
            return taken
        counted = ", ".join(str(count) for count in evidence.queued_timings)
        message = f"phases timed with {counted} workers are not used: they hold waiting; one worker's do not"
        return (*taken, Notice("TIMINGS_NOT_USED", message))


def _link_known(evidence: DeviceEvidence, key: CurveKey) -> bool:
    """Whether the link is known of the evidence that a curve starts from."""
    if evidence.phases is not None:
        return evidence.phases.setting.link_bytes_per_s > 0.0
    runs = evidence.runs.get(key.mode)
    return runs is None or runs.usual_setting.link_bytes_per_s > 0.0
