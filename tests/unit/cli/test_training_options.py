"""Options that say how a job is trained become facts of its workload, whatever file the job comes from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hugging_face_configs import LLAMA3_8B

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.plan_files import OfModel, read_plan
from nodewise_cli.inputs.questions import Question, asked_job
from nodewise_client import ProfileContent

STATED = {
    "framework": "pytorch",
    "optimizer": "sgd",
    "master_weights": False,
    "fused_loss": True,
    "execution": "compiled",
    "pipeline_schedule": "gpipe",
}
TABLE = "job,device,nodes,workers,batch_per_worker,steps_per_s,optimizer\na,A100,1,1,8,2.5,adam\n"


@pytest.mark.parametrize("kind", ["config.json", "profile.json", "table.csv", "measured"])
def test_options_stand_over_what_the_file_says(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    path.write_text(
        {
            "config.json": json.dumps(LLAMA3_8B),
            "profile.json": json.dumps({"workload": {"optimizer": "adam", "framework": "deepspeed"}}),
            "table.csv": TABLE,
            "measured": "",
        }[kind]
    )
    source = {"measured_runs": "1=20,2=38", "batch_per_worker": 8} if kind == "measured" else {"source": path}
    profile = asked_job(Question(**source, **STATED), None).profile
    assert isinstance(profile, ProfileContent)
    assert {name: getattr(profile.workload, name) for name in STATED} == STATED
    profile = asked_job(Question(**source), None).profile
    assert isinstance(profile, ProfileContent)
    assert profile.workload is None or profile.workload.execution == ""


def test_a_plan_of_a_model_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA3_8B))
    request = read_plan(path, OfModel(cluster="H100=1x8", batch=64, **STATED)).request
    assert request.profile is not None
    assert request.profile.content is not None
    assert {name: getattr(request.profile.content.workload, name) for name in STATED} == STATED


def test_what_says_it_already_takes_none(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="--master-weights: needs the config"):
        read_plan(path, OfModel(master_weights=False))
    with pytest.raises(InputError, match="--optimizer: must be left out when --profile"):
        asked_job(Question(profile="team/job", optimizer="sgd"), "127.0.0.1:1")
