"""Exchanges and devices are recognised by what they do and by the names of current builds, whoever recorded them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kineto_documents import Event, document, read, span

from nodewise.plugin import CollectiveKind, EventKind, Trace

KERNELS = {
    # NCCL up to 2.18 and after; RCCL of ROCm 6 does not tell the kind.
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)": CollectiveKind.ALL_REDUCE,
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)": CollectiveKind.ALL_GATHER,
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": CollectiveKind.REDUCE_SCATTER,
    "ncclSymkDevKernel_AllReduce_AGxLL_R_sum_bf16(ncclSymkDevWorkArgs)": CollectiveKind.ALL_REDUCE,
    "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)": CollectiveKind.UNKNOWN,
    "void mscclKernel_Sum_half_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)": CollectiveKind.UNKNOWN,
    # PyTorch's symmetric memory.
    "void (anonymous namespace)::multimem_all_reduce_kernel<float, 16>(float*)": CollectiveKind.ALL_REDUCE,
    "void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<float, 16>(float*)": CollectiveKind.ALL_REDUCE,
    "void (anonymous namespace)::multimem_all_gather_kernel<16>(char*)": CollectiveKind.ALL_GATHER,
    "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 8>()": CollectiveKind.ALL_REDUCE,
    # vLLM and SGLang, AITER, TensorRT-LLM, FlashInfer, DeepEP.
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)": CollectiveKind.ALL_REDUCE,
    "void aiter::cross_device_reduce_2stage<__half, 8>(aiter::RankData*)": CollectiveKind.ALL_REDUCE,
    "void tensorrt_llm::kernels::oneShotAllReduceKernel<__nv_bfloat16, 8, true>()": CollectiveKind.ALL_REDUCE,
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<8>()": CollectiveKind.ALL_REDUCE,
    "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)": CollectiveKind.ALL_TO_ALL,
    # oneCCL, HCCL, XLA.
    "oneccl_allreduce_large<sycl::_V1::ext::oneapi::bfloat16>": CollectiveKind.ALL_REDUCE,
    "hcom_allReduce__866_0_1": CollectiveKind.ALL_REDUCE,
    "hcom_allGather__866_3_1": CollectiveKind.ALL_GATHER,
    "all-reduce.17": CollectiveKind.ALL_REDUCE,
}
COMPUTE = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(at::native::ReduceOp<float>)",
    "void at::native::_scatter_gather_elementwise_kernel<128, 8>()",
    "void cub::DeviceReduceKernel<float>()",
    "void oneflow::softmax::SoftmaxWarpImpl<WarpAllReduce>()",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
)


def _launched(name: str, *, around: tuple[str, ...] = (), **args: Any) -> list[Event]:
    """A step with one kernel, its launch and operators around it."""
    operators = [span(one, "cpu_op", 10 + place, 100 - 2 * place) for place, one in enumerate(around)]
    return [
        span("ProfilerStep#3", "user_annotation", 0, 1000),
        *operators,
        span("cudaLaunchKernel", "cuda_runtime", 40, 5, correlation=7),
        span(name, "kernel", 60, 300, pid=0, device=0, stream=20, correlation=7, **args),
    ]


def _read(events: list[Event], ranks: int = 2) -> Trace:
    return read(document(events, distributedInfo={"backend": "nccl", "rank": 0, "world_size": ranks}))


@pytest.mark.parametrize(("name", "kind"), KERNELS.items())
def test_kernels_that_exchange(name: str, kind: CollectiveKind) -> None:
    found = _read(_launched(name)).collectives
    assert len(found) == 1
    assert CollectiveKind(int(found.kind[0])) == kind


@pytest.mark.parametrize("name", COMPUTE)
def test_kernels_that_do_not(name: str) -> None:
    assert not len(_read(_launched(name)).collectives)


@pytest.mark.parametrize(
    "around",
    [("c10d::allreduce_", "record_param_comms", "nccl:all_reduce"), ("record_param_comms", "HCCL:allReduce")],
)
def test_a_library_tells_the_kind_of_a_kernel_that_does_not(around: tuple[str, ...]) -> None:
    found = _read(_launched("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", around=around)).collectives
    assert found.kind.tolist() == [CollectiveKind.ALL_REDUCE]


def test_a_kernel_of_no_known_name_within_a_record_of_the_process_groups() -> None:
    found = _read(_launched("void vendor::ring_step<8>()", around=("record_param_comms",))).collectives
    assert len(found) == 1


def test_a_kernel_that_states_its_exchange() -> None:
    stated = {"Collective name": "allreduce", "In msg nelems": 1024, "dtype": "Float", "Group size": 2}
    found = _read(_launched("void vendor::ring_step<8>()", **stated)).collectives
    assert found.kind.tolist() == [CollectiveKind.ALL_REDUCE]
    assert found.in_bytes.tolist() == [4096]


@pytest.mark.parametrize(
    ("category", "call", "call_category"),
    [
        ("kernel", "urEnqueueKernelLaunch", "xpu_runtime"),
        ("mtia_ccp_events", "mtiaLaunchKernel", "mtia_runtime"),
        ("privateuse1_kernel", "launchKernel", "privateuse1_runtime"),
        ("tpu_work", "runFunction", "privateuse1_driver"),
    ],
)
def test_devices_of_any_category_that_has_streams(category: str, call: str, call_category: str) -> None:
    trace = _read(
        [
            span("ProfilerStep#3", "user_annotation", 0, 1000),
            span(call, call_category, 40, 5, correlation=7),
            span("pe_exe", category, 60, 300, pid=17, tid=3910, stream=112, correlation=7),
        ]
    )
    work = np.flatnonzero(trace.kind == EventKind.KERNEL)
    assert len(work) == 1
    assert not trace.lanes[int(trace.lane[work[0]])].is_host
    assert trace.report.counts["device_events_linked"] == 1


def test_processes_that_are_devices_by_name() -> None:
    """torch_npu shows its device as a process; what waits on its streams is no work."""
    trace = _read(
        [
            {"ph": "M", "name": "process_name", "pid": 31, "tid": 0, "args": {"name": "Ascend Hardware"}},
            span("ProfilerStep#3", "user_annotation", 0, 1000),
            span("aten::matmul", "cpu_op", 10, 60),
            span("aclnnMatmul_MatMulCommon_MatMulV2", "", 60, 300, pid=31, tid=2, **{"Task Type": "AI_CORE"}),
            span("Notify_Wait", "", 400, 100, pid=31, tid=3, **{"Task Type": "NOTIFY_WAIT_SQE"}),
            span("hcom_allReduce__866_0_1", "", 500, 200, pid=31, tid=3),
        ]
    )
    work = np.flatnonzero(trace.kind == EventKind.KERNEL)
    assert [trace.names[name] for name in trace.name[work]] == [
        "aclnnMatmul_MatMulCommon_MatMulV2", "hcom_allReduce__866_0_1"
    ]  # fmt: skip
    assert len(trace.collectives) == 1
    assert not trace.lanes[int(trace.lane[work[0]])].is_host


@pytest.mark.parametrize("unnumbered", [{}, {"correlation": 0}])
def test_work_is_linked_by_its_operator_where_nothing_is_numbered(unnumbered: dict[str, int]) -> None:
    events = [span("ProfilerStep#3", "user_annotation", 0, 1000)]
    for number in range(4):
        begin = 100 * number + 10
        events += [
            span("aten::mm", "cpu_op", begin, 50, **{"External id": 90 + number}),
            span("urEnqueueKernelLaunch", "xpu_runtime", begin + 10, 5, **{"External id": 90 + number}, **unnumbered),
            span(
                "gemm",
                "kernel",
                begin + 20,
                40,
                pid=0,
                device=0,
                stream=7,
                **{"External id": 90 + number},
                **unnumbered,
            ),
        ]
    trace = _read(events, ranks=1)
    assert trace.report.counts["device_events_linked"] == 4
    work, calls = (np.flatnonzero(trace.kind == kind) for kind in (EventKind.KERNEL, EventKind.CALL))
    assert trace.correlation[work].tolist() == trace.correlation[calls].tolist()
