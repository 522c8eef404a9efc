"""Which questions the evidence supports, and what would have to be measured for the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nodewise.plugin import Notice, Refusal, SyncMode
from nodewise_queueing.evidence import DeviceEvidence
from nodewise_queueing.rows import CurveKey

__all__ = ["OTHER_WORKERS", "PHASE_TIMINGS", "RefusalError", "Support"]

PHASE_TIMINGS = "phase_timings"
OTHER_WORKERS = "observations at another number of workers"
LINK = "network.link_bytes_per_second"
"""What a refusal names as missing."""


class RefusalError(Exception):
    """Rows are not answered, and why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal

    @staticmethod
    def missing(message: str, *fields: str) -> RefusalError:
        """What is known does not suffice; ``fields`` would help."""
        return RefusalError(Refusal.missing(message, *fields))


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """The evidence by device, and which of it answers a row."""

    devices: Mapping[str, DeviceEvidence]

    def device(self, key: CurveKey) -> str:
        """The device whose evidence answers a row; RefusalError where none does.

        Evidence of a device that was not stated stands for any; a row that states none takes the only one there is.
        """
        device = key.device
        if device not in self.devices:
            if "" in self.devices:
                device = ""
            elif not device and len(self.devices) == 1:
                device = next(iter(self.devices))
            elif self.devices:
                devices, asked_device = ", ".join(self.devices), device or "a device that is not stated"
                raise RefusalError.missing(
                    (f"the observations are of {devices}, and none is of {asked_device}: measure it there"),
                    PHASE_TIMINGS,
                    OTHER_WORKERS,
                )
            else:
                raise RefusalError.missing(
                    "no observations were given: the queueing model needs phase timings of one worker, or throughputs "
                    "of parameter-server runs at two or more numbers of workers",
                    PHASE_TIMINGS,
                    OTHER_WORKERS,
                )
        _check(self.devices[device], key)
        return device

    def devices_of(self, key: CurveKey, *, phases_needed: bool) -> tuple[str, ...]:
        """The devices whose evidence answers a curve, one per class of workers; RefusalError where some class has none.

        Workers that are not alike, and simulations, need the phases of every device.
        """
        devices = []
        for name in [each.device for each in key.classes] or [key.device]:
            device = self.device(key if name == key.device else replace(key, device=name))
            if (phases_needed or key.classes) and self.devices[device].phases is None:
                raise RefusalError.missing(
                    f"only throughputs of {name or 'the workers'} were measured: workers of different classes, and "
                    "simulations, need phase timings",
                    PHASE_TIMINGS,
                )
            devices.append(device)
        return tuple(devices)

    def only(self, device: str, key: CurveKey) -> int | None:
        """The one number of workers that a device's evidence answers for; None = any."""
        evidence = self.devices[device]
        if evidence.phases is not None:
            return None
        counts = evidence.runs[key.mode].worker_counts
        return counts[0] if len(counts) == 1 else None

    def elsewhere(self, mode: SyncMode, only: int) -> RefusalError:
        """Why other numbers of workers than the one that was measured are not answered."""
        return RefusalError.missing(
            f"{mode.name} throughput was measured at {only} workers only, which does not separate compute from "
            "waiting: measure another number of workers, or give phase timings",
            PHASE_TIMINGS,
            OTHER_WORKERS,
        )

    def notices(self, device: str, asked_device: str) -> tuple[Notice, ...]:
        """Notices about the evidence of a device that answers for the asked one."""
        evidence = self.devices[device]
        assumption: tuple[Notice, ...] = ()
        if asked_device and not device:
            assumption = (
                Notice("DEVICE_ASSUMED", f"the observations do not state their device: {asked_device} is assumed"),
            )
        if not evidence.queued_timings:
            return assumption
        counted = ", ".join(str(count) for count in evidence.queued_timings)
        message = (
            f"phase timings with {counted} workers are ignored, as they include waiting at the servers: time one worker"
        )
        return (*assumption, Notice("TIMINGS_NOT_USED", message))


def _check(evidence: DeviceEvidence, key: CurveKey) -> None:
    """Refuse a curve that the evidence of a device does not describe."""
    if key.setting.link_bytes_per_s > 0.0 and not _link_known(evidence, key):
        raise RefusalError.missing(
            (
                "the row states network.link_bytes_per_second, but the observations do not: transfers cannot be "
                "scaled to another link"
            ),
            LINK,
        )
    if evidence.phases is not None:
        return
    if key.backup_workers:
        raise RefusalError.missing(
            "backup workers depend on how much compute times vary, which throughputs do not show: give phase timings",
            PHASE_TIMINGS,
        )
    if key.mode in evidence.runs:
        return
    mode = key.mode.name
    if evidence.runs:
        other = ", ".join(SyncMode(mode).name for mode in evidence.runs)
        message = (
            f"only throughputs of {other} runs were measured, which do not carry over to {mode}: their steps are "
            "counted differently"
        )
    else:
        message = f"no throughput in sync mode {mode} was measured"
    if evidence.queued_timings:
        counted = ", ".join(str(count) for count in evidence.queued_timings)
        message += f"; phase timings with {counted} workers include waiting at the servers: time one worker"
    raise RefusalError.missing(message, PHASE_TIMINGS, OTHER_WORKERS)


def _link_known(evidence: DeviceEvidence, key: CurveKey) -> bool:
    """Whether the link is known of the evidence that a curve starts from."""
    if evidence.phases is not None:
        return evidence.phases.setting.link_bytes_per_s > 0.0
    runs = evidence.runs.get(key.mode)
    return runs is None or runs.usual_setting.link_bytes_per_s > 0.0
