"""Facts counted from modules on the meta device, against counts by hand."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: modules cannot be counted")

from nodewise_client.torch_facts import counted  # noqa: E402 - only where there is PyTorch

pytestmark = pytest.mark.torch
nn = torch.nn


def made(build, *shape):
    with torch.device("meta"):
        return build(), torch.empty(*shape)


def test_a_small_network_by_hand():
    model, images = made(
        lambda: nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1, bias=False),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(16, 10),
        ),
        *(4, 3, 32, 32),
    )
    facts = counted(model, images)
    convolution = 2 * 4 * 16 * 32 * 32 * 3 * 9
    linear = 2 * 4 * 16 * 10
    assert facts.forward_flops == convolution + linear
    # Backward: weights of both layers, and the input of the second one; images need no gradient.
    assert facts.flops == 2 * convolution + 3 * linear
    assert facts.flops_by_operator == {
        "convolution": convolution,
        "convolution_backward": convolution,
        "mm": 2 * linear,
        "addmm": linear,
    }
    assert (facts.parameters, facts.tensors, facts.parameter_bytes) == (602, 3, 2408)
    # Images, the output of the convolution's ReLU, the pooled numbers; what is kept of pooling is none or one of these.
    kept = 4 * (4 * 3 * 32 * 32 + 4 * 16 * 32 * 32 + 4 * 16)
    assert kept <= facts.activation_bytes <= kept + 4 * 4 * 16 * 32 * 32
    workload = facts.workload("small", family="Plain")
    assert (workload.model_name, workload.tensors_count, workload.parameter_bytes) == ("small", 3, 2408.0)
    assert workload.flops_per_sample == facts.flops / 4
    assert (workload.family, workload.activation_bytes_per_sample) == ("Plain", facts.activation_bytes / 4)


@pytest.mark.parametrize("batch", [1, 2, 16])
def test_flops_and_activations_grow_with_the_batch_and_parameters_do_not(batch):
    def one(samples):
        return counted(*made(lambda: nn.TransformerEncoderLayer(64, 4, batch_first=True), samples, 8, 64))

    single, many = one(1), one(batch)
    assert many.flops == batch * single.flops
    assert many.activation_bytes == batch * single.activation_bytes
    assert (many.parameters, many.batch) == (single.parameters, batch)


def test_a_shared_tensor_counts_once_and_a_frozen_one_not():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
            self.second.weight = self.first.weight
            self.third = nn.Linear(8, 2).requires_grad_(False)

        def forward(self, x):
            return {"scores": [self.third(self.second(self.first(x)))]}

    facts = counted(*made(Tied, 5, 8))
    assert (facts.parameters, facts.tensors) == (64, 1)


def test_outputs_may_be_nested_and_have_a_loss_of_their_own():
    model, numbers = made(lambda: nn.LSTM(8, 4, batch_first=True), 3, 5, 8)
    whole = counted(model, numbers)
    last = counted(model, numbers, loss=lambda output: output[0][:, -1].sum())
    assert whole.flops == last.flops > 2 * whole.forward_flops


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: (nn.Linear(4, 2), torch.empty(1, 4, device="meta")), "must be on the meta device"),
        (lambda: (nn.Linear(4, 2, device="meta"), torch.empty(1, 4)), "must be on the meta device"),
        (
            lambda: (nn.Linear(4, 2, device="meta").requires_grad_(False), torch.empty(1, 4, device="meta")),
            "no parameter of the module is trained",
        ),
        (lambda: (nn.Linear(4, 2, device="meta"),), "batch must be given"),
    ],
)
def test_what_cannot_be_counted_says_why(build, text):
    with pytest.raises(ValueError, match=text):
        counted(*build())
