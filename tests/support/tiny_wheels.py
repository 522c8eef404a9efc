"""Wheels of one module each, written by hand: plugins in several versions, without a network or a build."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

ESTIMATOR = '''
import numpy as np
from nodewise.plugin import Assessment, EstimatorRecord, Predictions, hookimpl

SECONDS = {seconds}


class Told:
    """Every step takes the same time, whatever runs."""

    def assess(self, profile, query):
        return Assessment(strength=0.5, evidence=("by hand",))

    def fit(self, profile, context):
        return self

    def predict(self, configurations, options):
        rows = len(configurations)
        steps = np.full(rows, float(SECONDS))
        {inside}
        return Predictions(
            status=np.full(rows, 1),
            step_s=steps,
            log_spread=np.full(rows, 0.1),
            breakdown_s={{"compute": steps}},
            bottlenecks=("compute",),
            bottleneck_index=np.full(rows, 0),
            extrapolation=np.full(rows, 1.0),
        )


@hookimpl
def nodewise_estimators():
    return [EstimatorRecord(name="{name}", version="{version}", description="by hand", estimator=Told())]
'''


def wheel(
    folder: Path,
    version: str,
    *,
    distribution: str = "told-plugin",
    name: str = "told",
    seconds: float = 1.0,
    inside: str = "",
    module: str | None = None,
    requires: tuple[str, ...] = (),
    group: str = "nodewise.plugins",
) -> Path:
    """Write a wheel of an estimator; returns its path.

    Parameters
    ----------
    inside : str
        A line of its predict.
    module : str or None
        The whole module; None = that estimator.
    """
    package = distribution.replace("-", "_")
    source = module or ESTIMATOR.format(seconds=seconds, inside=inside, name=name, version=version)
    info = f"{package}-{version}.dist-info"
    metadata = "".join(f"Requires-Dist: {each}\n" for each in requires)
    files = {
        f"{package}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n{metadata}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[{group}]\n{name} = {package}\n",
    }
    records = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        records.append(f"{path},sha256={digest},{len(text.encode())}")
    files[f"{info}/RECORD"] = "\n".join([*records, f"{info}/RECORD,,", ""])
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / f"{package}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(written, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return written
