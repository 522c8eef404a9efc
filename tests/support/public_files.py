"""Settings that configuration files of public projects state, written out by us: the same keys and values, without the
keys that say nothing of a layout. Each names its project, the file and the commit that it was read at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from nodewise_client import Recomputation

__all__ = ["FILES", "PublicFile"]

_HF_AUTO: Final = (
    '"gradient_accumulation_steps": "auto", "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"'
)
_HF_FP16: Final = '"fp16": {"enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000}'
_HF_ADAMW: Final = '"optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}}'
_CPU: Final = '{"device": "cpu", "pin_memory": true}'
_BATCH_OF_HF: Final = "train_micro_batch_size_per_gpu or train_batch_size: must be stated"
_BATCH_OF_SCRIPT: Final = "the batch of a device, which is the script's: must be stated"
_ONE_EACH: Final = {"micro_batch": 1}


@dataclass(frozen=True, kw_only=True)
class PublicFile:
    """A file, and what is read of it."""

    project: str
    path: str
    commit: str
    text: str
    nodes: int = 4
    devices_per_node: int = 8
    layers: int = 32
    without: str = ""
    """The message without `given`; empty = the file states the whole layout."""
    given: dict[str, int] = field(default_factory=dict)
    """What the question states instead of the file."""
    layout: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    refused: str = ""
    """The message, whatever the question states; empty = it is read."""


_DEEPSPEED: Final = (
    PublicFile(
        project="microsoft/DeepSpeedExamples",
        path="training/megatron/Megatron-LM-v1.1.5-ZeRO3/examples/ds_zero_stage_3_config.json",
        commit="97e8c6a6a4a76401c483aee65f89d50e627450ba",
        text='{"train_batch_size": 64, "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 3, '
        '"reduce_bucket_size": 1e7}, "fp16": {"enabled": true}, "zero_allow_untested_optimizer": false}',
        layout={"micro_batch": 2, "global_batch": 64, "zero_stage": 3, "precision": "fp16"},
    ),
    PublicFile(
        project="axolotl-ai-cloud/axolotl",
        path="deepspeed_configs/zero3_bf16.json",
        commit="1aaebb0dc1229adf56a7c8e0eeed91c6094b7715",
        text='{"zero_optimization": {"stage": 3, "sub_group_size": 0, "reduce_bucket_size": "auto"}, '
        f'"bf16": {{"enabled": true}}, {_HF_AUTO}}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 3, "precision": "bf16", "global_batch": 32},
    ),
    PublicFile(
        project="hiyouga/LLaMA-Factory",
        path="examples/deepspeed/ds_z2_autotp_config.json",
        commit="01113f53e9baddd945d344c5a9a0d5d891f3c705",
        text=f'{{"_comment": "a list of models: https://www.deepspeed.ai", {_HF_AUTO}, {_HF_FP16}, '
        '"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2, "overlap_comm": false}, '
        '"tensor_parallel": {"autotp_size": 2}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 2, "tensor": 2, "global_batch": 16},
    ),
    PublicFile(
        project="lm-sys/FastChat",
        path="playground/deepspeed_config_s3.json",
        commit="2afa628be4e9f84d5494ecb69f1d84156f3eb39b",
        text=f'{{{_HF_FP16}, "zero_optimization": {{"stage": 3, "offload_optimizer": {_CPU}, "offload_param": {_CPU}, '
        f'"stage3_max_live_parameters" : 1e9, "sub_group_size" : 1e12}}, {_HF_AUTO}}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 3},
        facts={"offload": "parameters"},
    ),
    PublicFile(
        project="allenai/open-instruct",
        path="configs/ds_configs/stage3_offloading.conf",
        commit="6c30879deb54f5f6d8b0536481eb075637b463ff",
        text=f'{{\n    "bf16": {{"enabled": "auto"}}, {_HF_ADAMW}, "zero_optimization": {{"stage": 3, '
        f'"offload_optimizer": {_CPU}, "offload_param": {_CPU}}}, {_HF_AUTO}, "steps_per_print": 1e5}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 3, "global_batch": 32},
        facts={"offload": "parameters", "optimizer": "adamw"},
    ),
    PublicFile(
        project="haotian-liu/LLaVA",
        path="scripts/zero3_offload.json",
        commit="02585ac91de123763200a608b17ac5349eb7fd73",
        text=f'{{{_HF_FP16}, "bf16": {{"enabled": true}}, {_HF_ADAMW}, "zero_optimization": {{"stage": 3, '
        f'"offload_optimizer": {_CPU}, "offload_param": {_CPU}}}, {_HF_AUTO}}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 3, "precision": "bf16"},
        facts={"offload": "parameters"},
    ),
    PublicFile(
        project="QwenLM/Qwen",
        path="finetune/ds_config_zero2.json",
        commit="af22d5e0cec7a7c058a445fcc4cb374de960ad5f",
        text=f'{{{_HF_FP16}, "bf16": {{"enabled": "auto"}}, {_HF_ADAMW}, "zero_optimization": {{"stage": 2, '
        f'"offload_optimizer": {{"device": "none", "pin_memory": true}}, "reduce_bucket_size": 2e8}}, {_HF_AUTO}}}',
        without=_BATCH_OF_HF,
        given={"global_batch": 128},
        layout={"zero_stage": 2, "micro_batch": 4},
        facts={"optimizer": "adamw"},
    ),
    PublicFile(
        project="FrankLeeeee/llama-deepspeed-benchmark",
        path="ds_config.json",
        commit="22410058da674bb4e5cd7e34ab25765af5b0eb41",
        text='{"fp16": {"enabled": true}, "optimizer": {"type": "Adam"}, "zero_optimization": {"stage": 2}, '
        '"gradient_accumulation_steps": 1, "train_batch_size": 32, "train_micro_batch_size_per_gpu":4}',
        nodes=1,
        layout={"zero_stage": 2, "micro_batch": 4, "global_batch": 32, "precision": "fp16"},
        facts={"optimizer": "adam"},
    ),
    PublicFile(
        project="FrankLeeeee/llama-deepspeed-benchmark",
        path="ds_config.json",
        commit="22410058da674bb4e5cd7e34ab25765af5b0eb41",
        text='{"fp16": {"enabled": true}, "optimizer": {"type": "Adam"}, "zero_optimization": {"stage": 2}, '
        '"gradient_accumulation_steps": 1, "train_batch_size": 32, "train_micro_batch_size_per_gpu":4}',
        refused="train_batch_size: 32 samples of a step must be a multiple of 32 replicas x 4 samples",
    ),
    PublicFile(
        project="THUDM/ChatGLM-6B",
        path="ptuning/deepspeed.json",
        commit="47a5ec121eb2c092a6347b503eb9f2540595a963",
        text=f'{{"train_micro_batch_size_per_gpu": "auto", {_HF_FP16}, "zero_optimization": {{"stage": 2, '
        '"contiguous_gradients" : true}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 2},
    ),
    PublicFile(
        project="databrickslabs/dolly",
        path="config/ds_z3_bf16_config.json",
        commit="c89f48d2648f05c742770e9d856af3adc50ebd14",
        text=f'{{"bf16": {{"enabled": "auto"}}, {_HF_ADAMW}, "zero_optimization": {{"stage": 3}}, '
        f'"tensorboard": {{"enabled": true}}, {_HF_AUTO}}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 3},
    ),
    PublicFile(
        project="tatsu-lab/stanford_alpaca",
        path="configs/default_offload_opt_param.json",
        commit="3783d185b542c9be78581c5ebc30f7e8688294b2",
        text=f'{{"bf16": {{"enabled": "auto"}}, {_HF_ADAMW}, "zero_optimization": {{"stage": 3, '
        f'"offload_optimizer": {_CPU}, "offload_param": {_CPU}}}, {_HF_AUTO}, "steps_per_print": 5}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 3},
        facts={"offload": "parameters"},
    ),
    PublicFile(
        project="huggingface/transformers",
        path="tests/deepspeed/ds_config_zero3.json",
        commit="61c7ec94b563d371cbafde35f3c6822049ebf131",
        text=f'{{"fp16": {{"enabled": true}}, "zero_optimization": {{"stage": 3, "offload_optimizer": {_CPU}, '
        f'"offload_param": {_CPU}, "sub_group_size": 1e14}}, "optimizer": {{"type": "AdamW"}}}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 3, "precision": "fp16"},
        facts={"offload": "parameters"},
    ),
    PublicFile(
        project="OpenGVLab/InternVL",
        path="internvl_chat/zero_stage3_config.json",
        commit="078e90cac07f0a93102baaa6863d87376a5918ca",
        text='{"zero_optimization": {"stage": 3, "reduce_bucket_size": 1e9}, "fp16": {"enabled": "auto", '
        '"auto_cast": true, "initial_scale_power": 32}, "bf16": {"enabled": "auto"}, '
        f'"optimizer": {{"type": "AdamW", "params": {{"lr": "auto", "betas": [0.9, 0.999]}}}}, {_HF_AUTO}}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 3},
    ),
    PublicFile(
        project="OptimalScale/LMFlow",
        path="configs/ds_config_zero3.json",
        commit="373284e4b9b6d93d399ae218dc1fbd5258cc4e5d",
        text=f'{{{_HF_FP16}, "bf16": {{"enabled": "auto"}}, "zero_optimization": {{"stage": 3, '
        f'"offload_optimizer": {{"device": "cpu"}}}}, {_HF_AUTO}}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 3},
        facts={"offload": "optimizer"},
    ),
    PublicFile(
        project="baichuan-inc/Baichuan2",
        path="fine-tune/ds_config.json",
        commit="d796a6504afb76ba047e6181d9397838a70464ee",
        text='{"train_batch_size": "auto", "train_micro_batch_size_per_gpu" :"auto", '
        '"gradient_accumulation_steps": "auto", "gradient_clipping": 1.0, "bf16": {"enabled": "auto"}, '
        '"zero_optimization": {"stage": 3}, "flops_profiler": {"enabled": false, "output_file": null}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 3},
    ),
    PublicFile(
        project="OpenLMLab/LOMO",
        path="config/ds_config.json",
        commit="9f1e734b2def94d18e077749305826b71ea60364",
        text='{"bf16": {"enabled": false}, "fp16": {"enabled": true}, "zero_optimization": {"stage": 3, '
        '"sub_group_size": 1e8}, "gradient_accumulation_steps": 1, "train_micro_batch_size_per_gpu": 2}',
        layout={"zero_stage": 3, "precision": "fp16", "micro_batch": 2, "global_batch": 64},
    ),
    PublicFile(
        project="OpenBMB/MiniCPM-V",
        path="finetune/ds_config_zero2.json",
        commit="764f50bf7e652c300ed1ac601b43731be39084ec",
        text=f'{{{_HF_FP16}, "bf16": {{"enabled": "auto"}}, {_HF_ADAMW}, "zero_optimization": {{"stage": 2, '
        f'"offload_optimizer": {{"device": "none", "pin_memory": true}}}}, {_HF_AUTO}}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 2},
    ),
    PublicFile(
        project="modelscope/ms-swift",
        path="swift/llm/ds_config/zero3.json",
        commit="35992c1cc9092af233edbd75a2aefcd496d6fc19",
        text=f'{{{_HF_FP16}, "bf16": {{"enabled": "auto"}}, "zero_optimization": {{"stage": 3, '
        '"offload_optimizer": {"device": "none"}, "offload_param": {"device": "none"}, '
        f'"zero_quantized_weights": false}}, {_HF_AUTO}}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 3},
    ),
    PublicFile(
        project="deepseek-ai/DeepSeek-Coder",
        path="finetune/configs/ds_config_zero3.json",
        commit="05e0ba01aab1e112c601681156b4b25b221474dd",
        text=f'{{"bf16": {{"enabled": "auto"}}, {_HF_ADAMW}, "scheduler": {{"type": "WarmupCosineLR"}}, '
        f'"zero_optimization": {{"stage": 3, "offload_optimizer": {_CPU}, "offload_param": {_CPU}}}, {_HF_AUTO}}}',
        without=_BATCH_OF_HF,
        given=_ONE_EACH,
        layout={"zero_stage": 3},
        facts={"offload": "parameters"},
    ),
    PublicFile(
        project="EleutherAI/gpt-neox",
        path="configs/6-7B.yml",
        commit="03547ba94492b4df850aa9b788d0b39db7ab0141",
        text="""# GPT-2
{
   # parallelism settings ( one's own )
   "pipe-parallel-size": 1,
   "model-parallel-size": 1,
   "num-layers": 32,
   "seq-length": 2048,
   "optimizer": {
     "type": "Adam",
     "params": {
       "betas": [0.9, 0.95],
       "eps": 1.0e-8,
     }
   },
   "zero_optimization": {
    "stage": 1,
    "overlap_comm": True,
    "cpu_offload": False
  },
   "train_micro_batch_size_per_gpu": 1,
   "gradient_accumulation_steps": 2,
   "checkpoint-activations": true,

   "fp16": {
     "fp16": true,
     "enabled": true,
     "loss_scale": 0
   },
   "wall_clock_breakdown": true,
}
""",
        layout={
            "zero_stage": 1,
            "micro_batch": 1,
            "global_batch": 64,
            "precision": "fp16",
            "recomputation": Recomputation.FULL,
        },
        facts={"optimizer": "adam"},
    ),
)

_ACCELERATE: Final = (
    PublicFile(
        project="huggingface/accelerate",
        path="examples/torch_native_parallelism/configs/nd.yaml",
        commit="26db67d53ca44e19fcaa72578c097303e7eab150",
        text="""distributed_type: FSDP
downcast_bf16: 'no'
fsdp_config:
  fsdp_activation_checkpointing: false
  fsdp_reshard_after_forward: true
  fsdp_version: 2
mixed_precision: bf16
num_machines: 1
num_processes: 8
parallelism_config:
  parallelism_config_cp_size: 4
  parallelism_config_dp_replicate_size: 1
  parallelism_config_dp_shard_size: 2
  parallelism_config_tp_size: 1
tpu_env: []
""",
        without=_BATCH_OF_SCRIPT,
        given=_ONE_EACH,
        layout={"context": 4, "tensor": 1, "data": 2, "zero_stage": 3, "devices": 8, "precision": "bf16"},
    ),
    PublicFile(
        project="huggingface/alignment-handbook",
        path="recipes/accelerate_configs/deepspeed_zero3.yaml",
        commit="22dde3b75dab6996273b25787834603ed02dcadf",
        text="""compute_environment: LOCAL_MACHINE
deepspeed_config:
  deepspeed_multinode_launcher: standard
  offload_optimizer_device: cpu
  offload_param_device: cpu
  zero_stage: 3
distributed_type: DEEPSPEED
mixed_precision: bf16
num_machines: 1
num_processes: 1
""",
        without=_BATCH_OF_SCRIPT,
        given=_ONE_EACH,
        layout={"devices": 1, "zero_stage": 3},
        facts={"offload": "parameters"},
    ),
    PublicFile(
        project="huggingface/trl",
        path="examples/accelerate_configs/alst_ulysses_4gpu.yaml",
        commit="0b1bb5906a10296c7f80f9d528ec8b0586253146",
        text="""# parallelism_config = ParallelismConfig(
#       cp_backend="deepspeed",

compute_environment: LOCAL_MACHINE
deepspeed_config:
  zero_stage: 3
distributed_type: DEEPSPEED
mixed_precision: bf16
num_machines: 1
num_processes: 4  # GPUs
parallelism_config:
  parallelism_config_dp_shard_size: 2  # Data
  parallelism_config_cp_size: 2  # Context
  parallelism_config_cp_backend: deepspeed
""",
        refused="parallelism_config.parallelism_config_cp_backend: must be torch: Ulysses",
    ),
    PublicFile(
        project="CarperAI/trlx",
        path="configs/accelerate/zero2-bf16.yaml",
        commit="5e5b28422df45bf797440f074307a7962f3de450",
        text="""compute_environment: LOCAL_MACHINE
deepspeed_config:
  gradient_accumulation_steps: 1
  offload_optimizer_device: none
  zero_stage: 2
distributed_type: DEEPSPEED
downcast_bf16: no
dynamo_config: {}
fsdp_config: {}
mixed_precision: bf16
num_machines: 1
num_processes: 8
""",
        without=_BATCH_OF_SCRIPT,
        given={"micro_batch": 2},
        layout={"devices": 8, "zero_stage": 2, "global_batch": 16},
    ),
    PublicFile(
        project="huggingface/peft",
        path="examples/sft/configs/fsdp_config.yaml",
        commit="c1e2a4032c939f2b26e5e7bb134353ecdf4b92e9",
        text="""compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_offload_params: false
  fsdp_sharding_strategy: SHARD_GRAD_OP
  fsdp_use_orig_params: false
mixed_precision: bf16
num_machines: 1
num_processes: 8
use_cpu: false""",
        without=_BATCH_OF_SCRIPT,
        given=_ONE_EACH,
        layout={"devices": 8, "zero_stage": 2},
    ),
)

_TORCHTITAN: Final = (
    PublicFile(
        project="pytorch/torchtitan",
        path="torchtitan/models/llama3/train_configs/llama3_405b.toml",
        commit="01424cb254492cd6f5924e26d28227d75913e122",
        text="""# NOTE: for 128 H100
[model]
flavor = "405B"
converters = "float8"
[training]
batch_size = 2
seq_len = 8192
compile = true
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 8  # 8-way
pipeline_parallel_degree = 1
context_parallel_degree = 1
[activation_checkpoint]
mode = 'full' # ['none', 'selective', 'full']
""",
        nodes=16,
        layers=126,
        layout={
            "tensor": 8,
            "data": 16,
            "micro_batch": 2,
            "global_batch": 32,
            "zero_stage": 3,
            "recomputation": Recomputation.FULL,
        },
        facts={"execution": "compiled"},
    ),
    PublicFile(
        project="NousResearch/torchtitan",
        path="torch_profiler_16n_config.toml",
        commit="982d637749617aef7354059b9394b2d5c008dacf",
        text="""[model]
name = "deepseek_v3"
[training]
dtype = "bfloat16"
local_batch_size = 8
seq_len = 32768
enable_cpu_offload = true
[parallelism]
data_parallel_shard_degree = -1
expert_parallel_degree = 128
context_parallel_degree = 16
[activation_checkpoint]
mode = "full"
[compile]
enable = false
""",
        nodes=16,
        layout={"expert": 128, "context": 16, "data": 8, "micro_batch": 8, "global_batch": 64},
        facts={"offload": "parameters", "master_weights": False},
    ),
    PublicFile(
        project="eminorhan/frontier-torchtitan",
        path="train_configs/llama3_8b.toml",
        commit="040b15618cd3a754ded9e796918b5213ad85efa3",
        text="""[training]
batch_size = 21
seq_len = 8192
data_parallel_replicate_degree = 21
data_parallel_shard_degree = 32
tensor_parallel_degree = 8
compile = false
[experimental]
pipeline_parallel_degree = 1
[activation_checkpoint]
mode = 'full'  # ['none', 'selective', 'full']
selective_ac_option = 'op'  # 'int' = every int layer
""",
        nodes=672,
        layout={"tensor": 8, "data": 672, "micro_batch": 21, "global_batch": 14112},
        facts={"sharding_devices_count": 32},
    ),
)

_MEGATRON: Final = (
    PublicFile(
        project="NVIDIA/Megatron-LM",
        path="examples/gpt3/train_gpt3_175b_distributed.sh",
        commit="157006d6d9bf4f55c0d4d7dacbd2b65e7bd84dc9",
        text="""#!/bin/bash
GPUS_PER_NODE=8
NUM_NODES=1
CHECKPOINT_PATH=$1 #<a path>
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
)
GPT_MODEL_ARGS=(
    --num-layers 96
    --seq-length 2048
    --attention-backend auto # Can use (flash/fused/unfused/local)
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 1536
    --rampup-batch-size 16 16 5859375
    --fp16
    --lr 6.0e-5
)
MODEL_PARALLEL_ARGS=(
\t--tensor-model-parallel-size 8
\t--pipeline-model-parallel-size 16
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \\
    ${GPT_MODEL_ARGS[@]} \\
    ${TRAINING_ARGS[@]} \\
    ${MODEL_PARALLEL_ARGS[@]}
""",
        nodes=16,
        layers=96,
        refused="--tensor-model-parallel-size 8 x --pipeline-model-parallel-size 16 must divide the 8 devices",
    ),
    PublicFile(
        project="swiss-ai/Megatron-LM",
        path="submit-llama3-70b.sh",
        commit="0e57e5e48d583bc9a1554a30a1fbec7ad52d7585",
        text="""#!/bin/bash
#SBATCH --nodes=32
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --no-requeue\t# so we don't lose the logs
MBS=1 # Micro batch size
GBS=1024 # Global batch size
SEQ_LEN=8192 # Sequence length
MOCK_DATA=false # Set to `true` to use mock data
MASTER_ADDR=$(hostname)
NETWORK_SIZE_ARGS=(
\t--num-layers 80
)
TRAINING_ARGS=(
\t--micro-batch-size $MBS
\t--global-batch-size $GBS
\t--optimizer adam
)
MIXED_PRECISION_ARGS=(
\t--bf16
)
DISTRIBUTED_ARGS=(
\t--tensor-model-parallel-size $SLURM_GPUS_PER_NODE
\t--sequence-parallel
\t--pipeline-model-parallel-size 8
\t--num-layers-per-virtual-pipeline-stage 5
\t--context-parallel-size 1
\t--use-distributed-optimizer
)
DATA_ARGS=(
\t--seq-length $SEQ_LEN
)
srun -l bash -c 'echo $(hostname) $(nvidia-smi | grep -o "|\\\\s*[0-9]*MiB")' > $GPU_MEM_LOGGING
if [ "$MOCK_DATA" = true ]; then
  DATA_ARGS="${DATA_ARGS[@]} --mock-data"
else
  DATA_ARGS="${DATA_ARGS[@]} --data-path $(python3 config.py -p $DATASETS)"
fi
TORCHRUN_ARGS=(
    --nproc-per-node $SLURM_GPUS_PER_NODE
\t--nnodes $SLURM_NNODES
)
TRAINING_CMD="torchrun ${TORCHRUN_ARGS[@]} pretrain_gpt.py \\
    ${NETWORK_SIZE_ARGS[@]} \\
    ${TRAINING_ARGS[@]} \\
    ${MIXED_PRECISION_ARGS[@]} \\
    ${DISTRIBUTED_ARGS[@]} \\
    $DATA_ARGS"
if [ -n "$WANDB_API_KEY" ]; then
  TRAINING_CMD="$TRAINING_CMD \\
    --wandb-project $PROJECT_NAME"
else
  export WANDB_MODE=disabled
fi
echo -e "\\nCMD: $TRAINING_CMD" >> $FILE
srun -lu --cpus-per-task $SLURM_CPUS_PER_TASK --wait 60 bash -c "$CMD_PREFIX $TRAINING_CMD"
""",
        nodes=32,
        devices_per_node=4,
        layers=80,
        layout={
            "tensor": 4,
            "pipeline": 8,
            "interleave": 2,
            "data": 4,
            "micro_batch": 1,
            "global_batch": 1024,
            "zero_stage": 1,
            "sequence_parallel": True,
            "precision": "bf16",
        },
        facts={"optimizer": "adam"},
    ),
    PublicFile(
        project="bigscience-workshop/bigscience",
        path="train/tr11-176B-ml/tr11-176B-ml.slurm",
        commit="003b25057ea7dd7b476dd2feb28668725b1cbdaa",
        text="""#!/bin/bash
#SBATCH --nodes=48
#SBATCH --gres=gpu:8                 # number of gpus
set -x -e
GPUS_PER_NODE=8
NNODES=$SLURM_NNODES
TP_SIZE=4
PP_SIZE=12
MICRO_BATCH_SIZE=2  # was MBS=1 till GBS=784
GLOBAL_BATCH_SIZE=2048  # 4.2M tokens
NLAYERS=70
SEQ_LEN=2048
OPTIMIZER_ARGS=" \\
    --optimizer adam \\
    "
#    --exit-duration-in-mins 1190 \\
GPT_ARGS=" \\
    --pp-partition-method 'type:transformer|embedding' \\
    --num-layers $NLAYERS \\
    --seq-length $SEQ_LEN \\
    --micro-batch-size $MICRO_BATCH_SIZE \\
    --rampup-batch-size 192 16 9_765_625 \\
    --global-batch-size $GLOBAL_BATCH_SIZE \\
    --bf16 \\
    --checkpoint-activations \\
    $OPTIMIZER_ARGS \\
    "
ZERO_STAGE=0 # bf16 has its own
config_json="./ds_config.$SLURM_JOB_ID.json"
cat <<EOT > $config_json
{
  "train_micro_batch_size_per_gpu": $MICRO_BATCH_SIZE,
  "zero_optimization": {
    "stage": $ZERO_STAGE
  }
}
EOT
DEEPSPEED_ARGS=" \\
    --deepspeed_config ${config_json} \\
    --zero-stage ${ZERO_STAGE} \\
    "
export LAUNCHER="python -u -m torch.distributed.run \\
    --nproc_per_node $GPUS_PER_NODE \\
    --nnodes $NNODES \\
    "
export CMD=" \\
    `pwd`/pretrain_gpt.py \\
    --tensor-model-parallel-size $TP_SIZE \\
    --pipeline-model-parallel-size $PP_SIZE \\
    $GPT_ARGS \\
     $DEEPSPEED_ARGS \\
    "
echo $CMD
# don't remove
clear; srun --jobid $SLURM_JOB_ID bash -c "$LAUNCHER --node_rank \\$SLURM_PROCID $CMD" 2>&1 | tee -a main_log.txt
""",
        nodes=48,
        layers=70,
        layout={
            "tensor": 4,
            "pipeline": 12,
            "data": 8,
            "micro_batch": 2,
            "global_batch": 2048,
            "zero_stage": 0,
            "precision": "bf16",
            "recomputation": Recomputation.FULL,
        },
        facts={"optimizer": "adam"},
    ),
    PublicFile(
        project="bigscience-workshop/Megatron-DeepSpeed",
        path="examples/run_evalharness_tr11-176b-ml.slurm",
        commit="9f531711b7a232fe11cfbffb0b4c24ac7cb07397",
        text="""#SBATCH --nodes=1
PP_SIZE=8
TP_SIZE=1
SEQ_LEN=2048
EVAL_MICRO_BATCH_SIZE=1
MEGATRON_REQUIRED_ARGS=" \\
    --num-layers -1 \\
    --seq-length -1  \\
"
CMD="./tasks/eval_harness/evaluate.py  \\
    --tensor-model-parallel-size $TP_SIZE  \\
    --pipeline-model-parallel-size $PP_SIZE \\
    --micro-batch-size $EVAL_MICRO_BATCH_SIZE \\
    --bf16 \\
    --seq-length $SEQ_LEN \\
    $MEGATRON_REQUIRED_ARGS \\
    "
GPUS_PER_NODE=8
$LAUNCHER $CMD 2>&1 | tee eval-harness.log
""",
        refused="--seq-length: must be a whole number of at least 1, found '-1'",
    ),
    PublicFile(
        project="microsoft/Megatron-DeepSpeed",
        path="examples_deepspeed/pretrain_llama2_distributed.sh",
        commit="b644fba3b2b1057f568ea80aaa725b55b957bb3b",
        text="""#!/bin/bash
set -ex
TP=2
PP=2
ZERO_STAGE=0
GPUS_PER_NODE=8
NNODES=1
NUM_LAYERS=24 # e.g. llama-13b: 40
SEQ_LENGTH=2048
MICRO_BATCH_SIZE=4
GLOBAL_BATCH_SIZE=32 # e.g. llama: 4M tokens
# activation_checkpoint="true"
activation_checkpoint="false"
LOG_TO_WANDB=0
WANDB_ARGS=
if [ $LOG_TO_WANDB -eq 1 ]
then
WANDB_ARGS="\\
       --wandb-project pretrain-llama2"
fi
cat <<EOT > $DS_CONFIG
{
  "train_batch_size" : $GLOBAL_BATCH_SIZE
}
EOT
ds_args=""
ds_args=" --deepspeed ${ds_args}"
ds_args=" --zero-stage=$ZERO_STAGE ${ds_args}"
if [ "${activation_checkpoint}" = "true" ]; then
  ## old argument
  # ds_args="--checkpoint-activations ${ds_args}"
  ds_args="--recompute-granularity full --recompute-method uniform ${ds_args}"
fi
DISTRIBUTED_ARGS="--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --node_rank $NODE_RANK"
torchrun $DISTRIBUTED_ARGS \\
       pretrain_gpt.py \\
       --tensor-model-parallel-size $TP \\
       --pipeline-model-parallel-size $PP \\
       --num-layers $NUM_LAYERS \\
       --micro-batch-size $MICRO_BATCH_SIZE \\
       --global-batch-size $GLOBAL_BATCH_SIZE \\
       --seq-length $SEQ_LENGTH \\
       --optimizer adam \\
       --bf16 \\
       $WANDB_ARGS \\
       $ds_args
""",
        nodes=1,
        layers=24,
        layout={
            "tensor": 2,
            "pipeline": 2,
            "data": 2,
            "micro_batch": 4,
            "global_batch": 32,
            "zero_stage": 0,
            "recomputation": Recomputation.NONE,
        },
    ),
    PublicFile(
        project="epfLLM/Megatron-LLM",
        path="examples/finetune.sh",
        commit="0e2a5b17ced7db4fc341caf34ac07714a7ab55ab",
        text="""#! /bin/bash
SIZE=7
TP=8
PP=1
GPUS_PER_NODE=8
MICRO_BATCH=1
GLOBAL_BATCH=12
N_NODES=1
SEQ_LEN=none
HELP_STR="[--size=$SIZE] [--tp=$TP] [--pp=$PP] [--gpus=$GPUS_PER_NODE] \\
[--micro-batch=$MICRO_BATCH] [--seq-len=...] [--help]"
help () {
\techo "Usage: $0 <gpt/llama/llama2/falcon> $HELP_STR"
}
if [[ $# = 1 ]] && [[ $1 = "-h" ]] || [[ $1 = "--help" ]]; then
\thelp
\texit 0
elif [[ $# = 0 ]]; then
\thelp
\texit 1
fi
MODEL=$1
shift
while [[ $# -gt 0 ]]; do
\tcase $1 in
\t\t--tp) TP="$2"; shift; shift;;
\t\t--micro-batch) MICRO_BATCH="$2"; shift; shift;;
\t\t*) echo unknown argument $1; help; exit 1;;
\tesac
done
DISTRIBUTED_ARGS="--nproc_per_node $GPUS_PER_NODE --nnodes $N_NODES --node_rank
                  $RANK --master_addr $ADDR --master_port 6000"
if [[ $MODEL = falcon ]]; then
\tif [[ $SEQ_LEN = none ]]; then
\t\tSEQ_LEN=2048
\tfi
elif [[ $MODEL = llama ]] || [[ $MODEL = llama2 ]]; then
\t# closing " missing intentionally
\tEXTRA_IDS='"[bib_ref],[/bib_ref]'
\tEXTRA_ARGS="--vocab_file=tokenizer.model --use_rms_norm
\t            --glu_activation swiglu"
\tif (( $SIZE > 13 )); then  # llama 2
\t\tLR="1.5e-4"
\tfi
elif [[ $MODEL = gpt ]]; then
\tEXTRA_ARGS="--num_layers 4 --hidden_size 512"
else
\techo "Model should be either gpt, llama or falcon, not $MODEL"
\texit 1
fi
COMMON_ARGS="--use_flash_attn --no_bias_gelu_fusion
\t     --seq_length $SEQ_LEN --sequence_parallel --recompute_granularity selective"
CUDA_DEVICE_MAX_CONNECTIONS=1 OMP_NUM_THREADS=16 torchrun $DISTRIBUTED_ARGS finetune.py \\
       --tensor_model_parallel_size $TP \\
       --pipeline_model_parallel_size $PP  \\
       --bf16 \\
       --global_batch_size $GLOBAL_BATCH \\
       --micro_batch_size $MICRO_BATCH \\
       --num_workers=2 \\
       $EXTRA_ARGS \\
       $COMMON_ARGS \\
""",
        nodes=1,
        layout={
            "tensor": 8,
            "pipeline": 1,
            "data": 1,
            "micro_batch": 1,
            "global_batch": 12,
            "sequence_parallel": True,
            "recomputation": Recomputation.SELECTIVE,
            "precision": "bf16",
        },
    ),
    PublicFile(
        project="ROCm/Megatron-LM",
        path="examples/llama/train_llama3.sh",
        commit="02b8aa76d2fc0f99e0077ee932b771397db9c415",
        text="""#!/bin/bash
NCCL_IB_HCA_LIST=$(rdma link -j | python3 -c "import sys, json; links=json.load(sys.stdin); print(*links,sep=',')")
for ARGUMENT in "$@"
do
   KEY=$(echo $ARGUMENT | cut -f1 -d=)
   KEY_LENGTH=${#KEY}
   export "$KEY"="$VALUE"
done
GPUS_PER_NODE=`python3 -c "import torch; print(torch.cuda.device_count())"`
NNODES="${NNODES:-1}"
if [ "${NNODES:-1}" -gt 1 ]; then
    echo "NCCL and GLOO socket interfaces set."
else
    echo "Single node setup."
fi
MODEL_SIZE="${MODEL_SIZE:-70}"
TP="${TP:-8}"
PP="${PP:-1}"
MBS="${MBS:-2}"
BS="${BS:-8}"
SEQ_LENGTH="${SEQ_LENGTH:-2048}"
SEQ_PARALLEL="${SEQ_PARALLEL:-1}"
OPTIMIZER="${OPTIMIZER:-adam}"
FSDP="${FSDP:-0}"
RECOMPUTE="${RECOMPUTE:-0}"
TE_FP8="${TE_FP8:-0}"  # 0: disable FP8, 1: enable FP8
if [ "$FSDP" -eq 1 ]; then
    if [ "$TP" -gt 1 ]; then
        TP=1
    fi
fi
TOKENIZER_MODEL="${TOKENIZER_MODEL:-"$DATA_DIR/tokenizer_llama3"}"
if ! [ -d "$TOKENIZER_MODEL" ]; then
  wget --header="Authorization: Bearer $HF_TOKEN" -O $TOKENIZER_MODEL/tokenizer.json
fi
if [[ $MODEL_SIZE -eq 8 ]]; then #llama3.1-8B
        NUM_LAYERS=32 # e.g. llama-13b: 40
elif [[ $MODEL_SIZE -eq 70 ]]; then
        NUM_LAYERS=80
else
        exit 1
fi
GPT_ARGS="
    --tensor-model-parallel-size ${TP} \\
    --pipeline-model-parallel-size ${PP} \\
    --num-layers $NUM_LAYERS \\
    --seq-length $SEQ_LENGTH \\
    --micro-batch-size $MBS \\
    --global-batch-size $BS \\
    --bf16 \\
"
if [ "$RECOMPUTE" -eq 1 ]; then
    GPT_ARGS="$GPT_ARGS --recompute-num-layers $NUM_LAYERS \\
        --recompute-granularity full \\
        "
fi
if [ "$OPTIMIZER" == "adam" ]; then
    TRAIN_ARGS="$TRAIN_ARGS --optimizer adam \\
        "
else
    TRAIN_ARGS="$TRAIN_ARGS --optimizer sgd \\
        "
fi
DISTRIBUTED_ARGS="
    --nproc_per_node $GPUS_PER_NODE \\
    --nnodes $NNODES \\
"
if [ "$FSDP" -eq 1 ]; then
    EXTRA_ARGS="$EXTRA_ARGS --use-torch-fsdp2"
    if [ "$SEQ_PARALLEL" -eq 1 ]; then
        SEQ_PARALLEL=0
    fi
else
    if [ "$OPTIMIZER" == "adam" ]; then
        EXTRA_ARGS="$EXTRA_ARGS --use-distributed-optimizer --overlap-param-gather"
    fi
fi
if [ "$SEQ_PARALLEL" -eq 1 ]; then
EXTRA_ARGS="$EXTRA_ARGS --sequence-parallel"
fi
if [ "$TE_FP8" -eq 1 ]; then
EXTRA_ARGS="$EXTRA_ARGS --fp8-format=hybrid \\
"
fi
run_cmd="
    torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \\
        $GPT_ARGS \\
        $EXTRA_ARGS \\
        $TRAIN_ARGS \\
"
eval $run_cmd
echo 'import argparse
parser.add_argument("filename")
    print(mean)' > mean_log_value.py
""",
        nodes=1,
        layers=80,
        layout={
            "tensor": 8,
            "pipeline": 1,
            "data": 1,
            "micro_batch": 2,
            "global_batch": 8,
            "zero_stage": 1,
            "sequence_parallel": True,
            "precision": "bf16",
            "recomputation": Recomputation.NONE,
        },
        facts={"optimizer": "adam"},
    ),
    PublicFile(
        project="alibaba/Pai-Megatron-Patch",
        path="examples/qwen2/run_mcore_qwen.sh",
        commit="0f5c122f6ddf417bd848e7deadf687d6dfdc9340",
        text="""#!/bin/bash
ENV=$1
CURRENT_DIR="$( cd "$( dirname "$0" )" && pwd )"
if [ $ENV = dsw ]; then
    NNODES=1
    GPUS_PER_NODE=`python -c "import torch; print(torch.cuda.device_count())"`
elif [ $ENV = dlc ]; then
    NNODES=${WORLD_SIZE}
fi
if [ -z ${MP_VP} ]; then
    vp_options=""
else
    vp_options=" \\
        --num-layers-per-virtual-pipeline-stage ${MP_VP}"
fi
BATCH_SIZE=$3
GLOBAL_BATCH_SIZE=$4
PR=$9
TP=${10}
PP=${11}
if [ $PR = fp16 ]; then
    pr_options=" \\
\t\t    --fp16"
elif [ $PR = bf16 ]; then
    pr_options=" \\
        --bf16"
fi
megatron_options="  \\
        --micro-batch-size ${BATCH_SIZE} \\
        --global-batch-size ${GLOBAL_BATCH_SIZE} \\
        --tensor-model-parallel-size ${TP} \\
        --pipeline-model-parallel-size ${PP} \\
        "
run_cmd="torchrun $DISTRIBUTED_ARGS pretrain_qwen.py
 ${megatron_options} ${pr_options} ${vp_options}"
eval ${run_cmd}
""",
        refused="--tensor-model-parallel-size: ${10} is not set in the file",
    ),
)

_OTHERS: Final = (
    PublicFile(
        project="NVIDIA/NeMo",
        path="examples/nlp/language_modeling/conf/megatron_mamba_config.yaml",
        commit="08790d90f4504f524c5ef111ba0758c1768f8628",
        text="""name: megatron_mamba
trainer:
  devices: 1
  num_nodes: 1
  precision: bf16
  logger: False # of the manager
exp_manager:
  checkpoint_callback_params:
    filename: 'megatron_mamba--{val_loss:.2f}-{step}-{consumed_samples}'
    model_parallel_size: ${multiply:${model.tensor_model_parallel_size}, ${model.pipeline_model_parallel_size}}


model:
  # model parallelism
  micro_batch_size: 1
  global_batch_size: 8
  tensor_model_parallel_size: 1
  pipeline_model_parallel_size: 1
  virtual_pipeline_model_parallel_size: null
  encoder_seq_length: 4096
  max_position_embeddings: ${.encoder_seq_length}
  position_embedding_type: 'none' # Options ['learned_absolute', 'rope']
  num_layers: 56
  activations_checkpoint_granularity: null # 'selective' or 'full'
  # 'full' will checkpoint the entire transformer layer.
  sequence_parallel: False

  data:
    data_prefix: [1.0, /path/to/data]
    splits_string: 900,50,50

  optim:
    name: distributed_fused_adam
    betas:
    - 0.9
    - 0.98
    sched:
      name: CosineAnnealing
""",
        layers=56,
        layout={
            "devices": 1,
            "micro_batch": 1,
            "global_batch": 8,
            "zero_stage": 1,
            "precision": "bf16",
            "recomputation": Recomputation.NONE,
        },
    ),
    PublicFile(
        project="mosaicml/llm-foundry",
        path="scripts/train/yamls/pretrain/mpt-7b.yaml",
        commit="15fb4ffaa6fbe16a33e158118bd8ba0b77ba78dc",
        text="""data_remote:  # If blank, files are in data_local
max_seq_len: 2048
model:
  name: mpt_causal_lm
  max_seq_len: ${max_seq_len}
optimizer:
  betas:
  - 0.9
  - 0.95
  eps: 1.0e-08
global_train_batch_size: 1024
device_train_microbatch_size: 8
precision: amp_bf16
fsdp_config:
  sharding_strategy: FULL_SHARD
  device_mesh:
    - 2
    - 4
callbacks:
  lr_monitor: {}
#   save_folder: s3://my-bucket/my-folder
""",
        refused="must be a configuration of DeepSpeed, which has zero_optimization",
    ),
)

FILES: Final = (*_DEEPSPEED, *_ACCELERATE, *_TORCHTITAN, *_MEGATRON, *_OTHERS)
