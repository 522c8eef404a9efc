"""How busy a job keeps a device, estimated from the job's own facts and steps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy

from nodewise.plugin import SoloJob

__all__ = ["busy_of", "busy_share"]


def busy_of(job: SoloJob) -> float:
    """Share of the step in which the device works: measured, else inferred from other devices, else all of it.

    What other devices tell is a lower end (work need not follow peak FLOP/s: it may wait for memory), the whole step
    the upper one; the middle of the two stands.
    """
    if job.device_utilisation is not None:
        return job.device_utilisation
    if job.step_seconds is None or not job.elsewhere:
        return 1.0
    return 0.5 * (1.0 + busy_share(job.step_seconds, job.elsewhere))


def busy_share(step_seconds: float, elsewhere: Mapping[str, tuple[float, float]]) -> float:
    """Share of a step that the device works, from steps on several devices.

    t_d = host + work / speed_d with neither part negative, relative residuals: Amdahl's law over devices. A job that
    gains nothing from a faster device waits for its host.
    """
    seconds = np.array([step_seconds, *(value for value, _ in elsewhere.values())])
    speeds = np.array([1.0, *(speed for _, speed in elsewhere.values())])
    (host, work), _ = scipy.optimize.nnls(
        np.column_stack([1.0 / seconds, 1.0 / (speeds * seconds)]), np.ones(seconds.size)
    )
    return float(work / (host + work))
