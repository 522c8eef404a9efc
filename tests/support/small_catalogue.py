"""A catalogue of SkyPilot's that is of the tests, in its environment: nothing is looked up elsewhere."""

from __future__ import annotations

from pathlib import Path

from sky import check, global_user_state
from sky.clouds import CloudCapability
from sky.skylet import constants

__all__ = ["prepare"]

HEAD = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region\n"
CATALOGUES = {
    "azure/vms.csv": HEAD
    + "Standard_NC64as_T4_v3,T4,4,64,440,,4.4,1.3,eastus\n"
    + "Standard_NC24s_v3,V100,4,24,448,,30.5,9.2,eastus\n"
    + "Standard_NC24rs_v9,A100,4,24,448,,2.0,1.0,eastus\n"
    + "Standard_ND40rs_v2,V100-32GB,8,40,672,,22.0,,eastus\n"
    + "Standard_D8s_v5,,,8,32,,0.38,0.08,eastus\n",
    "azure/images.csv": "Tag,Region,OS,OSVersion,ImageId,CreationDate\n",
    "lambda/vms.csv": HEAD + "gpu_4x_v100,V100,4,92,448,,29.0,,us-south-1\n",
    "common/accelerators.csv": 'AcceleratorName,Clouds\nT4,Azure\nA100,Azure\nV100-32GB,Azure\nV100,"Azure,Lambda"\n',
}


def prepare() -> None:
    """Write it into the home, with two clouds enabled."""
    folder = Path.home() / ".sky" / "catalogs" / constants.CATALOG_SCHEMA_VERSION
    for name, text in CATALOGUES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    # Both, else it asks the clouds themselves.
    global_user_state.set_enabled_clouds(["Azure", "Lambda"], CloudCapability.COMPUTE, "default")
    global_user_state.set_allowed_clouds(check._get_workspace_allowed_clouds("default"), "default")
