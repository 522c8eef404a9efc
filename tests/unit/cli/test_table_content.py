from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hugging_face_configs import LLAMA3_8B, LLAMA3_70B, LLAMA31_405B, MIXTRAL, QWEN3_30B

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.table_content import measurement_table, profile_content
from nodewise_cli.inputs.tables import Table, read_table
from nodewise_client import (
    Network,
    Observations,
    Recomputation,
    SyncMode,
    WorkerGroup,
    configuration_rows,
    model_from_hugging_face,
)

HEADER = (
    "job,device,sync,nodes,workers,parameter_servers,steps_per_s,split,"
    "compute_s,download_s,upload_s,update_s,link_bytes_per_s"
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    path = tmp_path / "table.csv"
    path.write_text(
        f"{HEADER}\n"
        "a,K80,async,1,1,1,2,train,0.3,0.1,0.1,,1000\n"
        "a,K80,async,2,2,1,4,test,0.4,0.2,0.2,0.1,\n"
        "b,K80,async,1,1,,2,train,,,,,10\n"
        "b,K80,async,1,1,,3,train,,,,,20\n"
        "c,V100,,1,4,,,test,,,,,\n"
    )
    return read_table(path)


def test_a_profile_holds_facts_and_train_rows_only(table: Table) -> None:
    content = profile_content(table, "a")
    assert isinstance(content.observations, Observations)
    assert content.observations.steps_per_second == (2.0,)
    assert content.phase_timings is not None
    assert content.phase_timings.compute_seconds == (0.3,)
    assert content.phase_timings.update_seconds == (0.0,)
    assert content.network is not None
    assert content.network.link_bytes_per_second == 1000


def test_a_job_without_train_rows_is_its_facts(table: Table) -> None:
    content = profile_content(table, "c")
    assert content.observations is None
    assert content.phase_timings is None


def test_a_link_that_differs_is_the_configurations(table: Table) -> None:
    content = profile_content(table, "b")
    assert content.network is not None
    assert content.network.link_bytes_per_second is None
    assert isinstance(content.observations, Observations)
    assert content.observations.configurations is not None
    assert content.observations.configurations.link_bytes_per_second == (10.0, 20.0)


def test_the_table_as_a_whole(table: Table) -> None:
    found = measurement_table(table)
    assert (found.job_names, found.job_indexes) == (("a", "b", "c"), (0, 0, 1, 1, 2))
    assert found.steps_per_second == (2.0, 4.0, 2.0, 3.0, 0.0)
    assert found.train == (True, False, True, True, False)
    assert found.phase_rows == (0, 1)
    assert found.configurations is not None
    # Unstated servers are one with servers, none without.
    assert found.configurations.parameter_servers == (1, 1, 1, 1, 0)
    assert found.configurations.sync_modes == (SyncMode.ASYNC,) * 4 + (SyncMode.ALLREDUCE,)
    assert found.configurations.link_bytes_per_second == (0.0, 0.0, 10.0, 20.0, 0.0)
    assert found.configurations.global_batch_samples == ()


def test_how_a_transformer_is_trained(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    head = "job,device,nodes,workers,steps_per_s,dropout,frozen_weights,frozen_weight_bits,offload,sharding_devices\n"
    path.write_text(head + "rates,A100,1,8,2,0.1,0.5,,optimizer,8\nflags,A100,1,8,2,false,true,4,,\n")
    rates, flags = measurement_table(read_table(path)).workloads
    assert (rates.dropout, rates.frozen_weights_share, rates.offload, rates.sharding_devices_count) == (
        *(True, 0.5, "optimizer", 8),
    )
    assert (flags.dropout, flags.frozen_weights_share, flags.frozen_weight_bits, flags.offload) == (False, 1.0, 4.0, "")


def test_a_vision_language_model_with_latent_attention(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    head = "job,device,nodes,workers,global_batch,layers,hidden_size,attention_heads,sequence_length,vocabulary_size,"
    more = "key_value_latent_size,stage_layers,optimizer,master_weights,encoder_layers,encoder_hidden_size,"
    path.write_text(
        f"{head}{more}encoder_attention_heads,encoder_tokens,steps_per_s\n"
        "t,H100,1,8,64,12,1024,16,1024,51200,512,5+7,adafactor,false,24,1024,16,576,2\n"
    )
    (workload,) = measurement_table(read_table(path)).workloads
    assert workload.transformer is not None
    assert workload.encoder is not None
    assert (workload.transformer.key_value_latent_size, workload.stage_layers) == (512, (5, 7))
    assert (workload.optimizer, workload.master_weights) == ("adafactor", False)
    assert (workload.encoder.layers_count, workload.encoder.tokens_per_sample) == (24, 576)


@pytest.mark.parametrize(
    ("column", "cell"),
    [("dropout", "1.5"), ("dropout", "some"), ("frozen_weights", "2"), ("stage_layers", "4x"), ("fused_loss", "2")],
)
def test_what_facts_of_training_may_be(column: str, cell: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"job,device,nodes,workers,steps_per_s,{column}\nt,A100,1,8,2,{cell}\n")
    with pytest.raises(InputError, match=column):
        read_table(path)


def test_a_partitioned_transformer(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(
        "job,device,nodes,workers,steps_per_s,split,global_batch,micro_batch,layers,hidden_size,attention_heads,"
        "sequence_length,vocabulary_size,tensor_parallel,pipeline_parallel,data_parallel,recompute,placement\n"
        "t,A100,1,8,2,train,64,2,12,1024,16,1024,51200,2,2,2,,8\n"
        "t,A100,2,8,,test,64,1,12,1024,16,1024,51200,4,2,1,none,\n"
    )
    found = measurement_table(read_table(path))
    (workload,) = found.workloads
    assert workload.transformer is not None
    assert (workload.transformer.layers_count, workload.transformer.vocabulary_size) == (12, 51200)
    assert (workload.precision, workload.optimizer) == ("", "adam")
    configurations = found.configurations
    assert configurations is not None
    assert configurations.recomputations == (None, Recomputation.NONE)
    assert configurations.batch_per_worker_samples == (2, 1)
    assert configurations.tensor_parallel_degrees == (2, 4)
    assert (configurations.placement_offsets, configurations.placement_workers) == ((0, 1, 1), (8,))


DIMENSIONS = (
    "layers,hidden_size,attention_heads,sequence_length,vocabulary_size,kv_heads,head_size,feed_forward_size,gated,"
    "untied_output,experts,experts_per_token,expert_feed_forward_size,expert_layers"
)


@pytest.mark.parametrize(
    ("config", "dimensions"),
    [
        (LLAMA3_8B, "32,4096,32,8192,128256,8,128,14336,true,true,0,,,"),
        (LLAMA3_70B, "80,8192,64,8192,128256,8,128,28672,true,true,,,,"),
        (LLAMA31_405B, "126,16384,128,8192,128256,8,128,53248,1,1,0,0,0,0"),
        (MIXTRAL, "32,4096,32,8192,32000,8,128,14336,yes,yes,8,2,14336,"),
        (QWEN3_30B, "48,2048,32,8192,151936,4,128,6144,true,true,128,8,768,48"),
    ],
    ids=["llama-3-8b", "llama-3-70b", "llama-3.1-405b", "mixtral-8x7b", "qwen3-30b-a3b"],
)
def test_columns_say_what_a_models_own_file_says(tmp_path: Path, config: dict[str, Any], dimensions: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"job,device,nodes,workers,steps_per_s,split,{DIMENSIONS}\nm,H100,1,8,2,train,{dimensions}\n")
    (workload,) = measurement_table(read_table(path)).workloads
    assert workload.transformer == model_from_hugging_face(config, sequence_length=8192).workload.transformer


def test_a_transformer_is_known_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("job,device,nodes,workers,steps_per_s,split,kv_heads\nm,H100,1,8,2,train,8\n")
    with pytest.raises(InputError, match="column layers: must be given if kv_heads is"):
        read_table(path)


def test_one_precision_is_a_fact_and_several_are_configurations(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(
        "job,device,nodes,workers,steps_per_s,split,precision\n"
        "a,A100,1,1,2,train,bf16\na,A100,1,1,2,test,\nb,A100,1,1,2,train,fp32\nb,A100,1,1,2,test,fp16\n"
    )
    found = measurement_table(read_table(path))
    assert found.workloads[0].precision == "bf16"
    assert found.workloads[1].precision == ""
    assert found.configurations is not None
    assert found.configurations.precisions == ("", "", "fp32", "fp16")


PARAMETER_SERVER = (
    "job,device,sync,nodes,workers,parameter_servers,steps_per_s,split,compute_s,download_s,upload_s,hidden_s,phase_steps,"
    "transfer_cv,steps,step_cv,backup_workers,hybrid_sync_fraction,hybrid_switch_s,groups,half_duplex,"
    "worker_link_bytes_per_s,per_message_s,round_trip_s\n"
    "a,V100,hybrid,4,4,1,8,train,0.3,0.1,0.1,0.05,100,0.2,50,0.1,,0.25,3,2+ 2 x K 80 *1.5,yes,1e9,1e-4,2e-4\n"
    "a,V100,sync,4,4,1,2,train,,,,,,,,,1,,,,,,,\n"
    "a,V100,sync,8,8,1,,test,,,,,,,,,,,,,,,,\n"
)


def test_every_fact_of_parameter_servers(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(PARAMETER_SERVER)
    found = measurement_table(read_table(path))
    configurations = found.configurations
    assert configurations is not None
    assert configurations.hybrid_sync_fractions == (0.25, 0.0, 0.0)
    assert configurations.hybrid_switch_seconds == (3.0, 0.0, 0.0)
    assert configurations.backup_workers == (0, 1, 0)
    mixed = (WorkerGroup(workers=2, device_name="V100"), WorkerGroup(workers=2, device_name="K 80", compute_factor=1.5))
    assert configuration_rows(configurations)[0]["groups"] == mixed
    assert configuration_rows(configurations)[1]["groups"] == ()
    assert (found.steps_counts, found.step_variation) == ((50, 0, 0), (0.1, 0.0, 0.0))
    assert found.step_variation_known == (True, False, False)
    network = Network(
        half_duplex=True,
        worker_link_bytes_per_second=1e9,
        per_message_seconds=1e-4,
        round_trip_seconds=2e-4,
        link_bytes_per_second=None,
    )
    assert found.networks == (network,)
    timings = profile_content(read_table(path), "a").phase_timings
    assert timings is not None
    assert (timings.hidden_seconds, timings.transfer_variation, timings.steps_counts) == ((0.05,), (0.2,), (100,))
    observations = profile_content(read_table(path), "a").observations
    assert isinstance(observations, Observations)
    assert (observations.steps_counts, observations.step_variation) == ((50, 0), (0.1, 0.0))
    assert observations.step_variation_known == (True, False)
